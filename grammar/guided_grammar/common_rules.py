"""Grammars of the rules that most documents have: their masks, made once for a vocabulary, serve every later grammar.

The names of undeclared properties, with their characters one by one; URIs; free text, numbers and any JSON value.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from guided_grammar.compiler import compile_spec
from guided_grammar.schema.emit_keys import BLOCKS
from guided_grammar.spec import GrammarSpec, Kind


@cache
def common_rules() -> tuple[str, ...]:
    """Grammar texts to compile."""
    names = ({block[at % len(block)]: True for block in BLOCKS} for at in (0, 1))
    schemas: list[Any] = [*({"properties": properties, "type": "object"} for properties in names), {"format": "uri"}]
    return tuple(compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema})).text for schema in schemas)
