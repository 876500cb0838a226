"""tools x choice x parallel x a format row -> one grammar.

    choice       output
    auto         free text; from the moment the row's trigger appears, calls to declared tools
    required     one call, several with `parallel`, and nothing else
    {"name": f}  exactly one call to f and nothing else

With `parallel` false the grammar holds at most one call: under auto the text then ends with it. Where the row has no
trigger, an answer under auto is calls or text. `strict: false` and no `parameters` mean any JSON object as arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.errors import GrammarError, InvalidConstraint, LimitExceeded, UnsupportedConstraint
from guided_grammar.formats import ToolFormat, tool_format
from guided_grammar.ir import EMPTY, Dispatch, Expr, Ref, Rules, alt, chars, opt, repeat, seq, text
from guided_grammar.limits import Limits
from guided_grammar.markers import markup
from guided_grammar.ranges import ALL, difference, normalise
from guided_grammar.tool_styles import WRITERS
from guided_grammar.tool_styles.tool import ANY_OBJECT, Tool, of_objects

_BARE_NAME = re.compile(r"[A-Za-z0-9_.\-]+")
_BLANKS = " \t\n\r"
_PLACES = {
    "{index}": repeat(chars([(0x30, 0x39)]), 1, 3),
    "{id}": repeat(chars([(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)]), 9, 9),
}
_PLACE = re.compile(r"(\{(?:index|id)\})")


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
    bodies = [_body(calls, tool, rules, budget, limits) for tool in wanted]
    return _answer(calls, rules, rules.add(alt(*bodies), "call"))


def _free(row: ToolFormat, rules: Rules) -> Expr:
    """Text that is no section of a row without a trigger: it begins with neither blanks nor markup."""
    firsts = {*_BLANKS, *(mark[0] for mark in (row.lead + row.before_name, *row.also) if mark)}
    first = chars(difference(ALL, normalise((ord(char), ord(char)) for char in firsts)))
    return opt(seq(first, rules.add(Dispatch((), True, _unwanted(row)), "free")))


def _answer(calls: ToolCalls, rules: Rules, call: Ref) -> Expr:
    """The answer around `call`, which goes from before a name to after its arguments."""
    row = calls.row
    rest = seq(call, markup(row.call_close, row, rules))
    nests = row.open + row.close != ""
    further = seq(markup(row.between + row.call_open, row, rules), rest)
    is_one = calls.named is not None or not calls.parallel or row.is_single
    more = EMPTY if is_one else repeat(rules.add(further, "further"), 0, None)
    close = markup(row.close, row, rules)
    if calls.auto and row.trigger:
        leads = (opening + row.call_open for opening in (row.open, *row.also_open))
        after = _spelled(tuple(lead.removeprefix(row.trigger) for lead in leads), row, rules)
        tail = rules.add(seq(after, rest, more if nests else EMPTY, close), "triggered")
        return Dispatch(((row.trigger, tail),), calls.parallel and not row.is_single, _unwanted(row))
    section = seq(markup(row.lead, row, rules), rest, more, close)
    if row.prefix:
        prefix = markup(row.prefix, row, rules)
        section = seq(prefix if row.trigger else opt(prefix), section, opt(markup(row.suffix, row, rules)))
    return alt(section, _free(row, rules)) if calls.auto else section


def _unwanted(row: ToolFormat) -> tuple[str, ...]:
    """Texts that free text never holds: what a reader also takes for calls, and the opener of a block of reasoning,
    which came before the answer where there is one."""
    if row.reasoning is None:
        return row.also
    return (*row.also, row.reasoning.open.strip(), *(opener for opener, _ in row.reasoning.also))


def _spelled(texts: Iterable[str], row: ToolFormat, rules: Rules) -> Expr:
    """Any of these texts of the row, with what stands in their places."""
    options = []
    for value in texts:
        parts = [part for part in _PLACE.split(value) if part]
        options.append(seq(*(_PLACES.get(part) or markup(part, row, rules) for part in parts)))
    return alt(*options)


def _body(calls: ToolCalls, tool: Tool, rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """One tool's call from before its name to after its arguments."""
    row = calls.row
    name = json.dumps(tool.name, ensure_ascii=False)[1:-1] if row.in_object else tool.name
    if not row.in_object and not _BARE_NAME.fullmatch(name):
        reason = f"tool {name!r}: format {row.name!r} cannot write this name"
        raise UnsupportedConstraint(reason, keyword="name", path=f"{tool.path}/function/name")
    also_name, also_arguments = (row.also_after_name, row.also_after_arguments) if calls.auto else ((), ())
    return seq(
        markup(row.before_name, row, rules),
        text(name),
        _spelled((row.after_name, *also_name), row, rules),
        _arguments(row, tool, rules, budget, limits),
        _spelled((row.after_arguments, *also_arguments), row, rules),
    )


def _arguments(row: ToolFormat, tool: Tool, rules: Rules, budget: Budget, limits: Limits) -> Ref:
    """The tool's schema, narrowed to objects, as a rule."""
    path = f"{tool.path}/function/parameters"
    try:
        size = len(json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":")).encode())
        if size > limits.schema_bytes:
            raise LimitExceeded("schema bytes", limits.schema_bytes, size, keyword="parameters")
        write = WRITERS[row.style]
        with budget.places.within("parameters", path, f"tool {tool.name!r}"):
            return rules.add(write(row, of_objects(tool.parameters), rules, budget, limits), "arguments")
    except GrammarError as error:
        raise _located(error, tool, path) from None


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
    return Tool(name, ANY_OBJECT if strict is False or parameters is None else parameters, path)
