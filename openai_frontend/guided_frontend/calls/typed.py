"""The text of an untyped argument as JSON, by the schema of its tool."""

from __future__ import annotations

from typing import Any

from guided_grammar.argument_kinds import kinds_of

from guided_frontend.calls.literal import json_of, string_of


def typed(text: str, parameters: Any, argument: str) -> str:
    """JSON text; what cannot be read as the type that the schema wants is a string."""
    kinds = kinds_of(parameters, argument)
    found = None if kinds.is_string(text) else json_of(text)
    return string_of(text) if found is None else found
