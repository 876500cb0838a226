"""A whole answer judged by means that its masks do not share: a JSON parser, and a JSON Schema validator of others."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.formats import CallStyle, tool_format
from guided_grammar.regex import full_language
from guided_grammar.spec import GrammarSpec, Kind

VALIDATOR = "jsonschema_rs"
"""The module that knows JSON Schema; the package is jsonschema-rs."""
_MESSAGE = 300


@dataclass(frozen=True)
class Opinion:
    """told: whether anything was checked. fault: what is wrong with the answer, "" for nothing that was found."""

    told: bool
    fault: str = ""


UNTOLD, FINE = Opinion(False), Opinion(True)


def is_available() -> bool:
    """Whether the validator is installed."""
    return find_spec(VALIDATOR) is not None


def on_answer(spec: GrammarSpec, text: str) -> Opinion:
    """Of the text of an answer that ended by itself.

    Untold: free text, GBNF, calls, and schemas that the validator cannot read (it fetches nothing). Raises ImportError
    where the validator is not installed.
    """
    match spec.kind:
        case Kind.JSON_OBJECT:
            return _on_json({"type": "object"}, text)
        case Kind.JSON_SCHEMA:
            return _on_json(spec.value["schema"], text)
        case Kind.CHOICE:
            is_one = any(written in spec.value for written in _as_written(text))
            return FINE if is_one else Opinion(True, "the answer is none of the choices")
        case Kind.REGEX:
            matches = any(map(_language(spec.value).contains, _as_written(text)))
            return FINE if matches else Opinion(True, "the regex does not match the answer")
    return UNTOLD


def _as_written(text: str) -> tuple[str, str]:
    """What the model may have written: the blank that SentencePiece puts before a text is not part of it."""
    return text, f" {text}"


def on_calls(spec: GrammarSpec, calls: Sequence[tuple[str, str]]) -> Opinion:
    """Of the (name, arguments) that were read out of an answer to a spec of tools: the names, and the arguments.

    Arguments that are written as JSON are held to the tool's schema, those of other styles to being an object.
    """
    tools = {tool["name"]: tool for tool in spec.value["tools"]}
    if not calls and spec.value["choice"] != "auto":
        return Opinion(True, "no call can be read")
    opinions = [
        _on_json(_parameters(tools[name], spec), arguments)
        if name in tools
        else Opinion(True, f"{name!r} is none of the tools")
        for name, arguments in calls
    ]
    wrong = [opinion for opinion in opinions if opinion.fault]
    return wrong[0] if wrong else Opinion(any(opinion.told for opinion in opinions))


def _parameters(tool: Mapping[str, Any], spec: GrammarSpec) -> Any:
    schema, style = tool.get("parameters"), tool_format(spec.value["format"]).style
    is_exact = style in (CallStyle.JSON, CallStyle.HARMONY) and tool.get("strict") is not False
    return schema if is_exact and schema is not None else {"type": "object"}


def _on_json(schema: Any, text: str) -> Opinion:
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=Decimal)
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except (ValueError, RecursionError) as error:
        return Opinion(True, f"not JSON: {error}")
    validator = _validator(json.dumps(schema))
    if validator is None:
        return UNTOLD
    wrong = next(iter(validator.iter_errors(value)), None)
    if wrong is None:
        return FINE
    place = "".join(f"/{step}" for step in wrong.schema_path)
    return Opinion(True, f"{wrong.message[:_MESSAGE]} (schema: {place})")


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    """None where the validator cannot read the schema."""
    rs = importlib.import_module(VALIDATOR)
    try:
        return rs.validator_for(json.loads(schema), validate_formats=True, offline=True)
    except (ValueError, rs.ValidationError, rs.ReferencingError):
        return None


@lru_cache(maxsize=64)
def _language(regex: str) -> Dfa:
    return full_language(regex, Budget())
