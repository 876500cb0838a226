"""tools x choice x parallel x a format row -> one grammar.

    choice       output
    auto         free text; from the moment the row's trigger appears, a call to a declared tool
    required     one call, several with `parallel`, and nothing else
    {"name": f}  exactly one call to f and nothing else

With `parallel` false the grammar holds at most one call: under auto the text then ends with it. `strict: false` and no
`parameters` mean any JSON object as arguments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.errors import GrammarError, InvalidConstraint, LimitExceeded, UnsatisfiableConstraint
from guided_grammar.formats import ToolFormat, tool_format
from guided_grammar.ir import Dispatch, Expr, Ref, Rules, alt, repeat, seq, text
from guided_grammar.limits import Limits
from guided_grammar.schema import compile_into

_ANY_OBJECT = {"type": "object"}


@dataclass(frozen=True)
class Tool:
    """One function that may be called. `path` is its JSON pointer in the list of tools."""

    name: str
    parameters: Any
    path: str


@dataclass(frozen=True)
class ToolCalls:
    """The value of a `Kind.TOOLS` spec, checked. `named`: the one tool to call, None where any may be."""

    row: ToolFormat
    tools: tuple[Tool, ...]
    auto: bool
    named: str | None
    parallel: bool

    @staticmethod
    def of(value: Any, limits: Limits) -> ToolCalls:
        """Raises InvalidConstraint naming the field at fault, LimitExceeded over limits.tool_count."""
        if not isinstance(value, dict):
            raise InvalidConstraint("must be an object", keyword="tools")
        row = tool_format(value.get("format", ""))
        if not row.has_calls:
            raise InvalidConstraint(f"format {row.name!r} has no tool calls", keyword="tools")
        tools = _tools(value.get("tools"), limits)
        choice, parallel = value.get("choice", "auto"), value.get("parallel", True)
        if not isinstance(parallel, bool):
            raise InvalidConstraint(f"must be true or false, got {parallel!r}", keyword="parallel_tool_calls")
        named = choice.get("name") if isinstance(choice, dict) else None
        if choice not in ("auto", "required") and named not in [tool.name for tool in tools]:
            raise InvalidConstraint(f"names no declared tool: {choice!r}", keyword="tool_choice")
        return ToolCalls(row, tools, choice == "auto", named, parallel)


def tools_expr(value: Any, rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """Add the rules of a `Kind.TOOLS` value to `rules`; returns the whole answer's expression.

    Raises GrammarError; one tool's refusal carries that tool's path (`/tools/2/function/parameters/...`).
    """
    calls = ToolCalls.of(value, limits)
    wanted = [tool for tool in calls.tools if calls.named in (None, tool.name)]
    row = calls.row
    body = alt(*(_body(row, tool, rules, budget, limits) for tool in wanted))
    rest = rules.add(seq(text(f'{{{_quoted(row.name_key)}: "'), body, text("}" + row.call_close)), "call")
    if calls.auto:
        after = rules.add(seq(text(row.call_open.removeprefix(row.trigger)), rest), "triggered")
        return Dispatch(((row.trigger, after),), loop=calls.parallel)
    more = repeat(seq(text(row.between + row.call_open), rest), 0, None)
    one = seq(text(row.call_open), rest)
    return one if calls.named is not None or not calls.parallel else seq(one, more)


def _body(row: ToolFormat, tool: Tool, rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """From inside the quotes of the name to the end of the arguments."""
    head = f"{_quoted(tool.name)[1:]}, {_quoted(row.arguments_key)}: "
    return seq(text(head), _arguments(tool, rules, budget, limits))


def _arguments(tool: Tool, rules: Rules, budget: Budget, limits: Limits) -> Ref:
    """The tool's schema, narrowed to objects, as a rule."""
    path = f"{tool.path}/function/parameters"
    try:
        size = len(json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":")).encode())
        if size > limits.schema_bytes:
            raise LimitExceeded("schema bytes", limits.schema_bytes, size, keyword="parameters")
        return rules.add(compile_into(_of_objects(tool.parameters), rules, budget, limits, "declared"), "arguments")
    except GrammarError as error:
        raise _located(error, tool, path) from None


def _of_objects(parameters: Any) -> dict[str, Any]:
    """The schema with `type` object, as a sibling: wrapping it would move the root that its `$ref`s start from."""
    if parameters is True:
        return _ANY_OBJECT
    if not isinstance(parameters, dict):
        raise InvalidConstraint("must be a schema of objects", keyword="parameters")
    types = parameters.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise UnsatisfiableConstraint(f"arguments are objects, the schema wants {types!r}", keyword="type")
    return {**parameters, "type": "object"}


def _located(error: GrammarError, tool: Tool, path: str) -> GrammarError:
    error.path = path + error.path
    error.keyword = error.keyword or "parameters"
    error.reason = f"tool {tool.name!r}: {error.reason}"
    error.args = (error.message,)
    return error


def _tools(value: Any, limits: Limits) -> tuple[Tool, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidConstraint("must be a list of at least one tool", keyword="tools")
    if len(value) > limits.tool_count:
        raise LimitExceeded("tools", limits.tool_count, len(value), keyword="tools")
    tools = tuple(_tool(entry, f"/tools/{at}") for at, entry in enumerate(value))
    names = [tool.name for tool in tools]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InvalidConstraint(f"the name {name!r} is declared twice", keyword="name", path=tools[at].path)
    return tools


def _tool(entry: Any, path: str) -> Tool:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InvalidConstraint("every tool needs a name", keyword="name", path=path)
    strict = entry.get("strict")
    parameters = entry.get("parameters")
    if strict not in (None, True, False):
        raise InvalidConstraint(f"must be true or false, got {strict!r}", keyword="strict", path=path)
    return Tool(name, _ANY_OBJECT if strict is False or parameters is None else parameters, path)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
