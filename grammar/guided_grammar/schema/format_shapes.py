"""Host names and mail addresses as grammars by hand: their automata, which count characters, have too many states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guided_grammar.automata import Dfa
from guided_grammar.bounded import counted
from guided_grammar.budget import Budget
from guided_grammar.ir import NOTHING, Expr, Rules, alt, chars, seq, text
from guided_grammar.linear import to_expr
from guided_grammar.ranges import Ranges, union
from guided_grammar.schema.json_text import QUOTE, JsonWriter

_ALNUM = chars(((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)))
_DASH, _DOT, _QUOTED = text("-"), text("."), text('\\"')
_SHORTEST_SPLIT = 12
_WIDE_LABEL, _NAME, _WIDE_NAME = 10, 64, 16


@dataclass(frozen=True)
class _Label:
    """Up to `longest` letters and digits, or up to `first` and then up to `dashes` times a dash (`twice`: the first
    time perhaps two) and up to `run`."""

    longest: int
    dashes: int
    twice: bool = False

    @property
    def run(self) -> int:
        return (self.longest - self.dashes - self.twice) // (self.dashes + 1)

    @property
    def first(self) -> int:
        return self.longest - self.dashes * (self.run + 1) - self.twice


_HOST = (_Label(63, 4, True), _Label(63, 4, True), _Label(31, 3, True), _Label(31, 3, True), _Label(31, 3, True))
"""223 characters with their dots, of the 253 that a host name may have."""
_MAIL_HOST = (_Label(63, 2), _Label(63, 2), _Label(31, 1), _Label(29, 1))
"""189 characters: with 64 before the `@` the 254 that an address may have."""


@dataclass(frozen=True)
class Mail:
    """Characters of a name, of a quoted name, those beyond ASCII that either may hold, and of a label with such."""

    atom: Ranges
    quoted: Ranges
    wide: Ranges
    label: Ranges


def hostname(low: int, high: int | None, rules: Rules) -> Expr | None:
    """Host names without labels that RFC 5890 reserves, of at most `_HOST` or three labels that `high` has room for.

    low: up to 4 are met by a dot and a last label of two. None for other bounds.
    """
    labels = _HOST if high is None or high >= _total(_HOST) else _split(high)
    return None if low > 4 or not labels else seq(QUOTE, _host(labels, (), low > 0, rules))


def email(mail: Mail, literal: Dfa, low: int, high: int | None, rules: Rules) -> Expr | None:
    """Addresses with a name of one atom, or of several with a dot between them, at a host.

    Without bounds also quoted names and, as `literal` says, what follows `@[`. low: up to 6 are met by the host.
    None for other bounds.
    """
    if high is not None and high >= _NAME + 1 + _total(_MAIL_HOST):
        high = None
    name = _NAME if high is None else min(_NAME, high // 3)
    labels = _MAIL_HOST if high is None else _split(high - 1 - name)
    if low > 6 or not labels:
        return None
    is_free = low == 0 and high is None
    at: Expr = seq(text("@"), rules.add(_host(labels, mail.label, low > 0, rules), "host"))
    if is_free:
        at = alt(at, seq(text("@["), rules.add(to_expr(literal, JsonWriter(), rules, Budget()), "literal")))
    kinds = [(mail.atom, mail.quoted, name)]
    if mail.wide:
        kinds.append((union(mail.atom, mail.wide), union(mail.quoted, mail.wide), min(name, _WIDE_NAME)))
    names = [_name(atom, longest, at, rules) for atom, _, longest in kinds]
    if is_free:
        names += [seq(_QUOTED, counted(chars(q), 0, n - 2, seq(_QUOTED, at))) for _, q, n in kinds]
    return seq(QUOTE, alt(*names))


def _total(labels: Sequence[_Label]) -> int:
    return sum(label.longest + 1 for label in labels) - 1


def _split(length: int) -> tuple[_Label, ...]:
    """A long label and two shorter ones within `length`, none where that is too short."""
    if length < _SHORTEST_SPLIT:
        return ()
    first = min(63, 3 * length // 7)
    rest = min(63, (length - first - 2) // 2)
    return _Label(first, 2 if first > 12 else 0), _Label(rest, 1 if rest > 8 else 0), _Label(rest, 0)


def _name(atom: Ranges, length: int, at: Expr, rules: Rules) -> Expr:
    """An atom of up to `length`, or up to five (three of a short name) with a dot between them, of equal shares."""
    dots = 4 if length == _NAME else 2
    each = (length - dots) // (dots + 1)
    after: Expr = NOTHING
    for _ in range(dots if each > 0 else 0):
        dotted = NOTHING if after == NOTHING else seq(_DOT, after)
        after = rules.add(counted(chars(atom), 1, each, alt(at, dotted)), "atom")
    several = NOTHING if after == NOTHING else counted(chars(atom), 1, each, seq(_DOT, after))
    return alt(counted(chars(atom), 1, length, at), several)


def _host(labels: Sequence[_Label], wide: Ranges, is_dotted: bool, rules: Rules) -> Expr:
    """Up to as many labels, each within its lengths; of `wide`, if there are any, a label may have up to ten.

    is_dotted: at least two, and no label but the first of one character.
    """
    exits: Expr = QUOTE
    for at, label in reversed(list(enumerate(labels))):
        least = 2 if is_dotted and at else 1
        name = _label(label, least, exits, rules)
        if wide:
            name = alt(name, counted(chars(wide), least, min(_WIDE_LABEL, label.longest), exits))
        found = rules.add(name, "label")
        exits = seq(_DOT, found) if is_dotted and at == 1 else alt(QUOTE, seq(_DOT, found))
    return found


def _label(label: _Label, least: int, exits: Expr, rules: Rules) -> Expr:
    """No two dashes in the third and fourth place."""
    plain = counted(_ALNUM, least - 1, label.longest - 1, exits)
    after: Expr = NOTHING
    for _ in range(label.dashes):
        dashed = NOTHING if after == NOTHING else seq(_DASH, after)
        after = rules.add(counted(_ALNUM, 1, label.run, alt(exits, dashed)), "run")
    if after == NOTHING:
        return seq(_ALNUM, plain)
    once, twice = seq(_DASH, after), seq(_DASH, _DASH, after)
    dashes = [counted(_ALNUM, 0, label.first - 1, once)]
    if label.twice:
        dashes += [twice, counted(_ALNUM, 2, label.first - 1, twice)]
    return seq(_ALNUM, alt(plain, *dashes))
