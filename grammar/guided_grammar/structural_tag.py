"""Structural tags, as xgrammar, vLLM and SGLang spell them -> one grammar.

    {"structures": [{"begin", "schema", "end"}], "triggers": [...]}     free text with tagged documents in it
    {"format": F}, F one of
    const_string         `value`
    json_schema          a document that meets `json_schema`
    regex, grammar       `pattern` (guided_regex), `grammar` (GBNF)
    any_text             any text without `excludes`; before an end it stops at the end's first occurrence
    sequence, or         `elements` one after the other, or one of them
    tag                  `begin`, `content` (a format), `end` (a text, or several of which one follows)
    triggered_tags       free text; where a trigger appears, a tag of `tags` that begins with it
    tags_with_separator  tags with `separator` between them

Anything else, and what these cannot say exactly, is refused. Free text goes on to the end of the answer, so nothing may
follow `triggered_tags`, and only a fixed text may follow `any_text`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.errors import GrammarError, LimitExceeded, UnsupportedConstraint
from guided_grammar.gbnf import parse_gbnf
from guided_grammar.ir import EMPTY, Dispatch, Expr, Ref, Rules, alt, opt, repeat, seq, text
from guided_grammar.limits import Limits
from guided_grammar.linear import Verbatim, to_expr
from guided_grammar.regex import full_language, regex_expr
from guided_grammar.schema import compile_into
from guided_grammar.structural_fields import KEYWORD, TagFields, invalid, located, tag_fields

Ends = tuple[str, ...]
"""The texts of which one follows a format; none where something follows that is no fixed text."""
NOTHING_FOLLOWS: Ends = ("",)
SOMETHING_FOLLOWS: Ends = ()


def structural_expr(value: Any, rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """Adds the rules of a `Kind.STRUCTURAL_TAG` value to `rules`; returns the whole answer's expression.

    Raises GrammarError with the path of the part at fault.
    """
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    if size > limits.schema_bytes:
        raise LimitExceeded("schema bytes", limits.schema_bytes, size, keyword=KEYWORD)
    fields = TagFields.of(value, "", "type", "structures", "triggers", "format")
    writer = _Writer(rules, budget, limits)
    if "format" in fields.values:
        if "structures" in fields.values or "triggers" in fields.values:
            raise invalid("format stands alone, without structures and triggers", "")
        return writer.before(fields.need("format", dict), "/format", NOTHING_FOLLOWS)
    try:
        return writer.before(_of_structures(fields), "", NOTHING_FOLLOWS)
    except GrammarError as error:
        error.path = error.path.replace("/tags/", "/structures/", 1).replace("/content/json_schema", "/schema", 1)
        error.args = (error.message,)
        raise


def _of_structures(fields: TagFields) -> dict[str, Any]:
    """The older spelling in the newer one."""
    tags = []
    for at, one in enumerate(fields.need("structures", list)):
        tag = TagFields.of(one, f"/structures/{at}", "begin", "schema", "end")
        schema = tag.values.get("schema")
        tags.append(
            {**tag.values, "content": {"type": "json_schema", "json_schema": True if schema is None else schema}}
        )
        del tags[-1]["schema"]
    return {"type": "triggered_tags", "triggers": fields.need("triggers", list), "tags": tags}


class _Writer:
    """Formats to expressions, into one set of rules."""

    def __init__(self, rules: Rules, budget: Budget, limits: Limits) -> None:
        self._rules, self._budget, self._limits = rules, budget, limits
        self._kinds: dict[str, Callable[[dict[str, Any], str, Ends], Expr]] = {
            "const_string": self._const, "json_schema": self._schema, "regex": self._regex, "grammar": self._grammar,
            "any_text": self._any_text, "sequence": self._sequence, "or": self._or, "tag": self._tag,
            "triggered_tags": self._triggered, "tags_with_separator": self._separated,
        }  # fmt: skip

    def before(self, value: Any, path: str, ends: Ends) -> Expr:
        """The format's texts, each followed by one of `ends`."""
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in self._kinds:
            raise UnsupportedConstraint(f"the format must be one of {', '.join(self._kinds)}; got {kind!r}",
                                        keyword=KEYWORD, path=path)  # fmt: skip
        return self._kinds[kind](value, path, ends)

    def _const(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        return _then(text(TagFields.of(value, path, "type", "value").need("value", str)), ends)

    def _schema(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        plainly: dict[str, Any] = {"style": "json", "any_order": False, "max_whitespace_cnt": None, "excludes": []}
        fields = TagFields.of(value, path, "type", "json_schema", *plainly)
        for name, plain in plainly.items():
            if fields.values.get(name, plain) != plain:
                raise UnsupportedConstraint(f"{name} must be left out", keyword=KEYWORD, path=f"{path}/{name}")
        schema = fields.values.get("json_schema")
        try:
            return _then(compile_into(schema, self._rules, self._budget, self._limits), ends)
        except GrammarError as error:
            raise located(error, f"{path}/json_schema") from None

    def _regex(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        pattern = TagFields.of(value, path, "type", "pattern").need("pattern", str)
        try:
            return _then(regex_expr(pattern, self._rules, self._budget), ends)
        except GrammarError as error:
            raise located(error, f"{path}/pattern") from None

    def _grammar(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        source = TagFields.of(value, path, "type", "grammar").need("grammar", str)
        try:
            return _then(parse_gbnf(source, self._rules, self._limits), ends)
        except GrammarError as error:
            raise located(error, f"{path}/grammar") from None

    def _any_text(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        excludes = TagFields.of(value, path, "type", "excludes").texts("excludes")
        if ends == NOTHING_FOLLOWS:
            return self._rules.add(Dispatch((), True, excludes), "text")
        if not ends or "" in ends:
            raise UnsupportedConstraint("only a fixed text may follow any_text", keyword=KEYWORD, path=path)
        end = "|".join(map(_escaped, ends))
        try:
            found = full_language(rf"[\s\S]*(?:{end})", self._budget)
            early = full_language(rf"[\s\S]*(?:{end})[\s\S]+", self._budget)
            language = found.difference(early, self._budget)
            for barred in excludes:
                held = full_language(rf"[\s\S]*{_escaped(barred)}[\s\S]*(?:{end})", self._budget)
                language = language.difference(held, self._budget)
        except GrammarError as error:
            raise located(error, path) from None
        return to_expr(language, Verbatim(), self._rules, self._budget)

    def _sequence(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        elements = TagFields.of(value, path, "type", "elements").need("elements", list)
        if not elements:
            return _then(EMPTY, ends)
        parts: list[Expr] = []
        at = 0
        while at < len(elements):
            place = f"{path}/elements/{at}"
            follows = ends if at == len(elements) - 1 else SOMETHING_FOLLOWS
            if at < len(elements) - 1 and _goes_on(elements[at]):
                # the fixed text behind it is where it stops
                at += 1
                follows = (self._fixed(elements[at], f"{path}/elements/{at}"),)
                parts.append(self.before(elements[at - 1], place, follows))
                if at == len(elements) - 1:
                    parts.append(_then(EMPTY, ends))
            else:
                parts.append(self.before(elements[at], place, follows))
            at += 1
        return seq(*parts)

    def _fixed(self, value: Any, path: str) -> str:
        if not isinstance(value, dict) or value.get("type") != "const_string":
            raise UnsupportedConstraint("only a const_string may follow free text", keyword=KEYWORD, path=path)
        return str(TagFields.of(value, path, "type", "value").need("value", str))

    def _or(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        elements = TagFields.of(value, path, "type", "elements").need("elements", list)
        if not elements:
            raise invalid("elements must not be empty", f"{path}/elements")
        return alt(*(self.before(one, f"{path}/elements/{at}", ends) for at, one in enumerate(elements)))

    def _tag(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        return self._after(value, path, "", ends)

    def _after(self, value: Any, path: str, begun: str, ends: Ends) -> Expr:
        """A tag whose text `begun` is already written."""
        fields = tag_fields(value, path)
        begin = fields.need("begin", str)
        start, closing = text(begin.removeprefix(begun)), fields.texts("end") if fields.values["end"] else ()
        content = self.before(fields.need("content", dict), f"{path}/content", closing or ends)
        return _then(seq(start, content), ends) if closing else seq(start, content)

    def _triggered(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        fields = TagFields.of(value, path, "type", "triggers", "tags", "at_least_one", "stop_after_first", "excludes")
        if ends != NOTHING_FOLLOWS:
            raise UnsupportedConstraint("nothing may follow triggered_tags", keyword=KEYWORD, path=path)
        triggers, tags = fields.texts("triggers"), self._tags(fields)
        if not triggers:
            raise invalid("triggers must not be empty", f"{path}/triggers")
        groups: dict[str, list[Expr]] = {trigger: [] for trigger in triggers}
        for at, tag in enumerate(tags):
            place = f"{path}/tags/{at}"
            begin = tag_fields(tag, place).need("begin", str)
            fitting = [trigger for trigger in triggers if begin.startswith(trigger)]
            if len(fitting) != 1:
                raise invalid(f"begin must start with exactly one trigger, got {len(fitting)}", f"{place}/begin")
            groups[fitting[0]].append(self._after(tag, place, fitting[0], SOMETHING_FOLLOWS))
        once = fields.flag("stop_after_first")
        rules = {trigger: self._rules.add(alt(*bodies), "tag") for trigger, bodies in groups.items() if bodies}
        # a trigger without a tag could only be followed by nothing: free text never holds it
        barred = (*fields.texts("excludes"), *(trigger for trigger in triggers if trigger not in rules))
        free = self._rules.add(Dispatch(tuple(rules.items()), not once, barred), "tags")
        if not fields.flag("at_least_one"):
            return free
        first = alt(*(seq(text(trigger), rule) for trigger, rule in rules.items()))
        return first if once else seq(first, free)

    def _separated(self, value: dict[str, Any], path: str, ends: Ends) -> Expr:
        fields = TagFields.of(value, path, "type", "tags", "separator", "at_least_one", "stop_after_first")
        tags = [
            self._after(tag, f"{path}/tags/{at}", "", SOMETHING_FOLLOWS) for at, tag in enumerate(self._tags(fields))
        ]
        one: Ref = self._rules.add(alt(*tags), "tag")
        more: Expr = EMPTY
        if not fields.flag("stop_after_first"):
            further = seq(text(fields.need("separator", str)), one)
            more = repeat(self._rules.add(further, "further"), 0, None)
        several = seq(one, more)
        return _then(several if fields.flag("at_least_one") else opt(several), ends)

    def _tags(self, fields: TagFields) -> Sequence[Any]:
        tags = fields.need("tags", list)
        if not tags:
            raise invalid("tags must not be empty", f"{fields.path}/tags")
        if len(tags) > self._limits.tool_count:
            raise LimitExceeded("tags", self._limits.tool_count, len(tags), keyword=KEYWORD, path=f"{fields.path}/tags")
        return list(tags)


def _goes_on(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "any_text"


def _then(expr: Expr, ends: Ends) -> Expr:
    return expr if ends in (NOTHING_FOLLOWS, SOMETHING_FOLLOWS) else seq(expr, alt(*map(text, ends)))


def _escaped(value: str) -> str:
    return re.sub(r"[\\^$.*+?()\[\]{}|/\-]", r"\\\g<0>", value)
