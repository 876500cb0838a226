"""Which one constraint a request asks for. Pure.

Order: forced tool, guided_choice, guided_regex, guided_grammar, guided_json, response_format, tools left to the model.
With allow_tools_with_response_format the last two are one constraint.
`structured_outputs` is another spelling of the guided fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from guided_grammar.formats import CallStyle, ToolFormat
from guided_grammar.spec import FREE, GrammarSpec, Kind

from guided_frontend.errors import BadRequest
from guided_frontend.schemas import AllowedChoice, ChatRequest, Generation, NamedTool, Structured, Tool


@dataclass(frozen=True)
class Constraint:
    """`field`: the request field that asks for it; "" for none. `shown`: the tools that the prompt shows."""

    spec: GrammarSpec = FREE
    field: str = ""
    shown: tuple[Tool, ...] = ()


def of_chat(body: ChatRequest, family: ToolFormat, shows_tools: bool) -> Constraint:
    """Raises BadRequest where the request contradicts itself or the family cannot write a forced call."""
    choice = body.tool_choice or ("auto" if body.tools else "none")
    _check_tools(body.tools)
    callable_tools, mode = _callable(body.tools, choice)
    if mode not in ("auto", "none"):
        if not shows_tools:
            raise BadRequest("tool_choice cannot be forced: this model has no tool calling", "tool_choice")
        spec = _calls(family, callable_tools, mode, body.parallel_tool_calls)
        return Constraint(spec, "tools", tuple(body.tools))
    output = of_text(body)
    if output.field == "response_format" and mode == "auto" and body.allow_tools_with_response_format and shows_tools:
        return _document_or_calls(family, callable_tools, body, output)
    if output.spec is not FREE or mode == "none" or not body.tools or not shows_tools:
        return output
    return Constraint(_calls(family, callable_tools, "auto", body.parallel_tool_calls), "tools", tuple(body.tools))


def _document_or_calls(
    family: ToolFormat, tools: Sequence[Tool], body: ChatRequest, document: Constraint
) -> Constraint:
    """One grammar: the model writes the document or calls tools, whichever it begins with."""
    field = "allow_tools_with_response_format"
    if not family.trigger or family.style is CallStyle.HARMONY:
        raise BadRequest(f"{field}: calls of this model's format cannot be told from a document", field)
    spec = _calls(family, tools, "required", body.parallel_tool_calls)
    value = {**spec.value, "or": {"kind": document.spec.kind.value, "value": document.spec.value}}
    return Constraint(GrammarSpec(Kind.TOOLS, value), "response_format", tuple(body.tools))


def of_text(body: Generation) -> Constraint:
    """The constraint on the text itself, tools aside."""
    found = sorted([*_guided(body), *_structured(body.structured_outputs)], key=lambda c: _ORDER.index(c.spec.kind))
    if found:
        return found[0]
    wanted = body.response_format
    if wanted is None:
        return Constraint()
    if wanted.type != "structural_tag" and wanted.structural_tag:
        name = next(iter(wanted.structural_tag))
        raise BadRequest(f"response_format.{name} needs type structural_tag", f"response_format.{name}")
    if wanted.type == "text":
        return Constraint()
    if wanted.type == "structural_tag":
        return Constraint(GrammarSpec(Kind.STRUCTURAL_TAG, wanted.structural_tag), "response_format")
    if wanted.type == "json_object":
        return Constraint(GrammarSpec(Kind.JSON_OBJECT), "response_format")
    if wanted.json_schema is None or wanted.json_schema.schema_ is None:
        raise BadRequest("response_format.json_schema.schema is required", "response_format.json_schema.schema")
    schema = _schema(wanted.json_schema.schema_, "response_format")
    return Constraint(GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema, "order": "declared"}), "response_format")


_ORDER = (Kind.CHOICE, Kind.REGEX, Kind.GBNF, Kind.JSON_SCHEMA, Kind.JSON_OBJECT, Kind.STRUCTURAL_TAG)


def _guided(body: Generation) -> Iterator[Constraint]:
    yield from _text_kinds("guided_", body.guided_choice, body.guided_regex, body.guided_grammar, body.guided_json)


def _structured(body: Structured | None) -> Iterator[Constraint]:
    if body is None:
        return
    found = list(_text_kinds("structured_outputs.", body.choice, body.regex, body.grammar, body.json_))
    if body.json_object:
        found.append(Constraint(GrammarSpec(Kind.JSON_OBJECT), "structured_outputs.json_object"))
    if body.structural_tag is not None:
        tag = _loaded(body.structural_tag, "structured_outputs.structural_tag")
        found.append(Constraint(GrammarSpec(Kind.STRUCTURAL_TAG, tag), "structured_outputs.structural_tag"))
    if len(found) != 1:
        raise BadRequest(
            "structured_outputs must hold exactly one of json, regex, choice, grammar, json_object, structural_tag;"
            f" got {len(found)}",
            "structured_outputs",
        )
    yield found[0]


def _text_kinds(
    prefix: str, choice: list[str] | None, regex: str | None, grammar: str | None, schema: Any
) -> Iterator[Constraint]:
    if choice is not None:
        yield Constraint(GrammarSpec(Kind.CHOICE, choice), f"{prefix}choice")
    if regex is not None:
        yield Constraint(GrammarSpec(Kind.REGEX, regex), f"{prefix}regex")
    if grammar is not None:
        yield Constraint(GrammarSpec(Kind.GBNF, grammar), f"{prefix}grammar")
    if schema is not None:
        value = {"schema": _schema(schema, f"{prefix}json"), "order": "sorted"}
        yield Constraint(GrammarSpec(Kind.JSON_SCHEMA, value), f"{prefix}json")


def _schema(value: Any, field: str) -> dict[str, Any] | bool:
    """A schema, which may come as the text of one."""
    value = _loaded(value, field)
    if not isinstance(value, (dict, bool)):
        raise BadRequest(f"{field} must be a JSON Schema: an object, true or false", field)
    return value


def _loaded(value: Any, field: str) -> Any:
    """A JSON value that may come as its text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{field} is not JSON: {error}", field) from None


def _check_tools(tools: Sequence[Tool]) -> None:
    names = [tool.function.name for tool in tools]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise BadRequest(f"tools declares {name!r} twice", f"tools[{place}].function.name")


def _callable(tools: Sequence[Tool], choice: str | NamedTool | AllowedChoice) -> tuple[Sequence[Tool], str | NamedTool]:
    """The tools that may be called, and "auto", "none", "required" or the one that must be."""
    declared = {tool.function.name for tool in tools}
    if isinstance(choice, AllowedChoice):
        allowed = {tool.function.name for tool in choice.allowed_tools.tools}
        _declared(allowed, declared)
        return [tool for tool in tools if tool.function.name in allowed], choice.allowed_tools.mode
    if isinstance(choice, NamedTool):
        _declared({choice.function.name}, declared)
    elif choice == "required" and not tools:
        raise BadRequest('tool_choice "required" needs tools', "tool_choice")
    return tools, choice


def _declared(names: set[str], declared: set[str]) -> None:
    for name in sorted(names - declared):
        raise BadRequest(f'tool_choice names function "{name}" which is not in tools')


def _calls(family: ToolFormat, tools: Sequence[Tool], mode: str | NamedTool, parallel: bool) -> GrammarSpec:
    choice = {"name": mode.function.name} if isinstance(mode, NamedTool) else mode
    listed = [
        {"name": t.function.name, "parameters": t.function.parameters, "strict": t.function.strict} for t in tools
    ]
    return GrammarSpec(Kind.TOOLS, {"format": family.name, "tools": listed, "choice": choice, "parallel": parallel})
