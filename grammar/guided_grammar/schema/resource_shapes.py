"""URIs and IRIs of bounded length as grammars by hand: each part has a share of the bound.

What is left of the bound after a part is its whole share's rest, however much of the share was used, so that there are
few rules and no text is too long; a text of one long path comes close to the bound, one of many long parts does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from guided_grammar.bounded import counted
from guided_grammar.ir import Expr, Ref, Rules, alt, chars, seq, text
from guided_grammar.ranges import Ranges, difference
from guided_grammar.schema.json_text import QUOTE

_SHORTEST_BOUND = 32
_MOST_LEAST = 12
_SCHEME, _PORT, _HOST, _ESCAPES = 10, 5, 64, 2
_SLASH: Ranges = ((0x2F, 0x2F),)
_COLON: Ranges = ((0x3A, 0x3A),)
_DIGIT: Ranges = ((0x30, 0x39),)
_HEX: Ranges = (*_DIGIT, (0x41, 0x46), (0x61, 0x66))
_LETTER: Ranges = ((0x41, 0x5A), (0x61, 0x7A))
_SCHEMES: Ranges = ((0x2B, 0x2B), (0x2D, 0x2E), *_DIGIT, *_LETTER)


class Part(IntEnum):
    """What follows a host, in this order, each with its separator or not at all."""

    PATH = 0
    QUERY = 1
    FRAGMENT = 2


_SEPARATORS = {Part.QUERY: "?", Part.FRAGMENT: "#"}


@dataclass(frozen=True)
class Resource:
    """Characters of a host, of a path with its slashes, of a query and of a fragment, without `%`."""

    host: Ranges
    path: Ranges
    query: Ranges
    fragment: Ranges


def full(resource: Resource, low: int, high: int | None, rules: Rules) -> Expr | None:
    """Those with a scheme, of `low` to `high` characters; None without an upper bound and for bounds that are close.

    No user information, no address in brackets, at most `_ESCAPES` percent-encoded octets. A lower bound is met by the
    name of a host.
    """
    if high is None or high < _SHORTEST_BOUND or low > _MOST_LEAST:
        return None
    return seq(QUOTE, _Writer(resource, rules).full(low, high))


def reference(resource: Resource, low: int, high: int | None, rules: Rules) -> Expr | None:
    """Also relative ones, but for those that begin with two slashes; a lower bound of 1 only leaves out the empty."""
    if low > 1 or high is None or high < _SHORTEST_BOUND:
        return None
    writer = _Writer(resource, rules)
    empty = () if low else (QUOTE,)
    return seq(QUOTE, alt(writer.full(0, high), writer.relative(high), *empty))


def after_beginning(resource: Resource, is_path: bool, high: int, rules: Rules) -> Expr:
    """What may follow `scheme://`, or `scheme://host/`, within `high` characters, and the quote."""
    writer = _Writer(resource, rules)
    return writer.part(Part.PATH, high) if is_path else writer.authority(high)


class _Writer:
    def __init__(self, resource: Resource, rules: Rules) -> None:
        self._resource, self._rules = resource, rules
        self._classes: Mapping[Part, Ranges] = dict(
            zip(Part, (resource.path, resource.query, resource.fragment), strict=True)
        )
        self._refs: dict[tuple[Part, int, int], Ref] = {}

    def full(self, low: int, high: int) -> Expr:
        left = high - 1 - _SCHEME
        rootless = seq(chars(difference(self._resource.path, _SLASH)), self.part(Part.PATH, left - 1))
        hosted = seq(text("//"), self.authority(left - 2, max(0, low - len("a://"))))
        after = self._rules.add(hosted if low else alt(hosted, rootless), "after")
        return seq(chars(_LETTER), counted(chars(_SCHEMES), 0, _SCHEME - 1, seq(text(":"), after)))

    def relative(self, high: int) -> Expr:
        rooted = seq(chars(difference(self._resource.path, _SLASH)), self.part(Part.PATH, high - 2))
        first = difference(self._resource.path, (*_SLASH, *_COLON))
        half = high // 2
        ends = alt(QUOTE, seq(text("/"), self.part(Part.PATH, high - half - 1)), *self._next(Part.PATH, high - half))
        return alt(
            counted(chars(first), 1, half, ends), seq(text("/"), alt(QUOTE, rooted)), *self._next(Part.PATH, high)
        )

    def authority(self, left: int, least: int = 0) -> Expr:
        """A host of `least` characters or more and what may follow it, within `left`."""
        host = max(least, min(_HOST, left // 4))
        left -= host + 1 + _PORT
        ends = alt(QUOTE, seq(text("/"), self.part(Part.PATH, left - 1)), *self._next(Part.PATH, left))
        port = seq(text(":"), counted(chars(_DIGIT), 1, _PORT, ends))
        return counted(chars(self._resource.host), least, host, alt(ends, port))

    def _next(self, part: Part, left: int, escapes: int = _ESCAPES) -> list[Expr]:
        """The parts that may follow, with their separators, within `left`."""
        after = [(other, sign) for other, sign in _SEPARATORS.items() if other > part]
        return [seq(text(sign), self.part(other, left - 1, escapes)) for other, sign in after]

    def part(self, part: Part, left: int, escapes: int = _ESCAPES) -> Ref:
        """The rest of an answer of which `part` goes on, with up to `left` characters and `escapes` encoded octets."""
        key = (part, left, escapes)
        if key not in self._refs:
            self._refs[key] = self._rules.reserve("part")
            share, third = (left // 2 if part is Part.PATH else 3 * left // 4), left // 3
            plain = chars(self._classes[part])
            options = [counted(plain, 0, left, QUOTE)]
            if left > 3:
                options += [counted(plain, 0, share, e) for e in self._next(part, left - share, escapes)]
            if escapes and left - third >= 3:
                rest = self.part(part, left - third - 3, escapes - 1)
                options.append(counted(plain, 0, third, seq(text("%"), chars(_HEX), chars(_HEX), rest)))
            self._rules.define(self._refs[key], alt(*options))
        return self._refs[key]
