"""GBNF text -> grammar rules.

    grammar  = { rule }                      rule  = name "::=" alts            (ends before the next `name ::=`)
    alts     = items { "|" items }           items = { item }                   (none: the empty text)
    item     = primary { "*" | "+" | "?" | "{" m "}" | "{" m "," "}" | "{" "," n "}" | "{" m "," n "}" }
    primary  = '"' chars '"' | "[" ["^"] ranges "]" | "." | name | "(" alts ")"

Characters are Unicode scalar values; escapes: \\x41 \\u0041 \\U00000041 \\n \\r \\t \\\\ \\" \\[ \\] \\-. Comments run
from # to the line's end. This is llama.cpp's dialect, plus `{,n}`, `_` in names and lines that continue a rule; its
token references `<...>` are refused: a grammar is compiled for any vocabulary. The last definition of a name counts.
"""

from __future__ import annotations

import re

from guided_grammar.errors import InvalidConstraint, LimitExceeded, UnsupportedConstraint
from guided_grammar.ir import EMPTY, Expr, Ref, Rules, alt, chars, repeat, seq, text
from guided_grammar.limits import Limits
from guided_grammar.ranges import ALL, Ranges, complement, normalise

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_HEAD = re.compile(r"([A-Za-z0-9_-]+)(?:[ \t]+|#[^\r\n]*)*::=")
_BOUNDS = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_MAX_NESTING = 100


class GbnfParser:
    """Parses one grammar into `rules`; `definitions` maps its rule names to references into them."""

    def __init__(self, source: str, rules: Rules, limits: Limits) -> None:
        self._source, self._rules, self._limits = source, rules, limits
        self._at = self._depth = 0
        self._bodies: dict[str, Expr] = {}
        self._refs: dict[str, Ref] = {}
        self._first_use: dict[str, int] = {}

    def parse(self) -> dict[str, Ref]:
        """Raises InvalidConstraint with line and column, LimitExceeded for a bound or nesting over the limits."""
        self._skip()
        while self._at < len(self._source):
            self._rule()
        for name, at in self._first_use.items():
            if name not in self._bodies:
                raise self._error(f'rule "{name}" is not defined', at)
        for name, body in self._bodies.items():
            self._rules.define(self._ref(name), body)
        return {name: self._ref(name) for name in self._bodies}

    def _rule(self) -> None:
        head = _HEAD.match(self._source, self._at)
        if head is None:
            name = _NAME.match(self._source, self._at)
            raise self._error("expected ::= after the rule name" if name else "expected a rule name", self._at)
        self._at = head.end()
        self._skip()
        self._bodies[head[1]] = self._alternatives()
        if self._at < len(self._source) and not self._ends_rule():
            raise self._error(f"unexpected {self._source[self._at]!r}", self._at)

    def _alternatives(self) -> Expr:
        options = [self._items()]
        while self._peek() == "|":
            self._at += 1
            self._skip()
            options.append(self._items())
        return alt(*options)

    def _items(self) -> Expr:
        items: list[Expr] = []
        while self._peek() not in ("", "|", ")") and not self._ends_rule():
            item = self._primary()
            self._skip()
            while self._peek() and self._peek() in "*+?{":
                item = self._repeated(item)
                self._skip()
            items.append(item)
        return seq(*items) if items else EMPTY

    def _primary(self) -> Expr:
        char = self._peek()
        if char == '"':
            return self._literal()
        if char == "[":
            return self._class()
        if char == "(":
            return self._group()
        if char == ".":
            self._at += 1
            return chars(ALL)
        if char in ("<", "!"):
            raise UnsupportedConstraint(
                self._message("references to tokens are not supported", self._at), keyword="gbnf"
            )
        name = _NAME.match(self._source, self._at)
        if name is None:
            problem = "nothing to repeat" if char in "*+?{" else f"unexpected {char!r}"
            raise self._error(problem, self._at)
        self._first_use.setdefault(name[0], self._at)
        self._at = name.end()
        return self._ref(name[0])

    def _group(self) -> Expr:
        start = self._at
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise LimitExceeded("nested parentheses", _MAX_NESTING, None, keyword="gbnf")
        self._at += 1
        self._skip()
        body = self._alternatives()
        if self._peek() != ")":
            raise self._error("this ( is never closed", start)
        self._at += 1
        self._depth -= 1
        return body

    def _repeated(self, item: Expr) -> Expr:
        sign, start = self._peek(), self._at
        if sign != "{":
            self._at += 1
            return repeat(item, int(sign == "+"), 1 if sign == "?" else None) if sign != "?" else alt(item, EMPTY)
        bounds = _BOUNDS.match(self._source, start)
        if bounds is None or not (bounds[1] or bounds[3]) or (bounds[3] and not bounds[2]):
            raise self._error("expected a bound like {2}, {2,}, {,2} or {2,3}", start)
        self._at = bounds.end()
        low, high = self._bound(bounds[1] or "0"), self._bound(bounds[3]) if bounds[3] else None
        if not bounds[2]:
            high = low
        if high is not None and high < low:
            raise self._error(f"the bounds {bounds[0]} are reversed", start)
        return repeat(item, low, high)

    def _bound(self, digits: str) -> int:
        limit = self._limits.repeat
        if len(digits) > 9 or int(digits) > limit:
            raise LimitExceeded("repetition", limit, int(digits) if len(digits) <= 9 else None, keyword="gbnf")
        return int(digits)

    def _literal(self) -> Expr:
        start = self._at
        self._at += 1
        value: list[str] = []
        while self._peek() != '"':
            at = self._at
            value.append(self._char(start))
            if "\ud800" <= value[-1] <= "\udfff":
                raise self._error(f"U+{ord(value[-1]):X} is not a character", at)
        self._at += 1
        return text("".join(value))

    def _class(self) -> Expr:
        start = self._at
        self._at += 1
        negated = self._peek() == "^"
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while self._peek() != "]":
            low = high = ord(self._char(start))
            if self._peek() == "-" and self._source[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                high = ord(self._char(start))
            if high < low:
                raise self._error("a character range is reversed", start)
            ranges.append((low, high))
        self._at += 1
        if not ranges:
            raise self._error("this character class is empty", start)
        members: Ranges = normalise(ranges)
        return chars(complement(members) if negated else members)

    def _char(self, opening: int) -> str:
        """The next character of a literal or class that began at `opening`, its escape undone."""
        char = self._peek()
        if not char:
            raise self._error(f"this {self._source[opening]} is never closed", opening)
        start = self._at
        self._at += 1
        if char != "\\":
            return self._scalar(ord(char), start)
        kind = self._peek()
        self._at += 1
        if kind in _ESCAPES:
            return _ESCAPES[kind]
        size = _HEX_DIGITS.get(kind, 0)
        digits = self._source[self._at : self._at + size]
        if not size or not re.fullmatch(f"[0-9A-Fa-f]{{{size}}}", digits):
            raise self._error(f"unknown escape \\{kind}{digits}", start)
        self._at += size
        return self._scalar(int(digits, 16), start)

    def _scalar(self, code: int, at: int) -> str:
        """Surrogates pass: they may bound a range, and a set never holds them."""
        if code > 0x10FFFF:
            raise self._error(f"U+{code:X} is not a character", at)
        return chr(code)

    def _ends_rule(self) -> bool:
        """Whether the next rule begins here. Inside parentheses it cannot."""
        return self._depth == 0 and _HEAD.match(self._source, self._at) is not None

    def _skip(self) -> None:
        blank = _BLANK.match(self._source, self._at)
        self._at = blank.end() if blank else self._at

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _ref(self, name: str) -> Ref:
        if name not in self._refs:
            self._refs[name] = self._rules.reserve("g")
        return self._refs[name]

    def _message(self, problem: str, at: int) -> str:
        line = self._source.count("\n", 0, at) + 1
        column = at - self._source.rfind("\n", 0, at)
        return f"line {line}, column {column}: {problem}"

    def _error(self, problem: str, at: int) -> InvalidConstraint:
        return InvalidConstraint(self._message(problem, at), keyword="gbnf")
