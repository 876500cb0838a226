"""The arguments of a call as single properties, for styles that do not write one JSON object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.errors import UnsatisfiableConstraint, UnsupportedConstraint
from guided_grammar.ir import EMPTY, NOTHING, Expr, Rules, alt, repeat, seq
from guided_grammar.regex import search_language
from guided_grammar.schema.document import Document
from guided_grammar.schema.emit import Emitter
from guided_grammar.schema.expand import Expander
from guided_grammar.schema.formula import Formula
from guided_grammar.schema.objects import ObjectPart
from guided_grammar.schema.settle import Settled, settle
from guided_grammar.schema.strings import Piece, Strings

_EXTRA_NAME = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"


@dataclass(frozen=True)
class Style:
    """named, extra: one argument of a declared name, None where the style cannot write the name; one of any name in a
    set. between: what parts two arguments."""

    named: Callable[[str, Formula], Expr | None]
    extra: Callable[[Strings, Formula], Expr]
    between: Expr = EMPTY


def emitter_of(schema: dict[str, Any], rules: Rules, budget: Budget, make: type[Emitter] = Emitter) -> Emitter:
    """What writes the values of `schema`, by formula."""
    return make(Expander(Document(schema, budget), budget), rules, False)


def written(emitter: Emitter, style: Style, is_sorted: bool) -> Expr:
    """The arguments that the schema allows, in declared or sorted order.

    Undeclared arguments are only written where the schema declares none, or asks for more than it declares.
    Raises UnsatisfiableConstraint, or UnsupportedConstraint for what the style cannot write.
    """
    values = emitter.expander.values(emitter.expander.root())
    whole = alt(*(chain(emitter, style, part, is_sorted) for part in values.objects))
    if whole == NOTHING:
        raise UnsatisfiableConstraint("no arguments satisfy this schema", keyword="schema")
    return whole


def chain(emitter: Emitter, style: Style, part: ObjectPart, is_sorted: bool) -> Expr:
    """The properties of one object, without what stands around them. As `written`, but `NOTHING` where none fit."""
    options = []
    for settled in settle(part, emitter.expander, False):
        if is_sorted:
            # as Jinja's dictsort, which templates sort with
            settled = replace(settled, named=tuple(sorted(settled.named, key=lambda named: named[0].lower())))
        if settled.witnesses:
            raise UnsupportedConstraint("asks too much of undeclared arguments", keyword="not")
        options.append(_Chain(emitter, style, settled).run())
    return alt(*options)


class _Chain:
    """Rules over the declared arguments in order; one for each number of arguments so far that makes a difference."""

    def __init__(self, emitter: Emitter, style: Style, settled: Settled) -> None:
        self._emitter, self._style, self._settled = emitter, style, settled
        self._low = settled.low if settled.low > settled.num_required else 0
        few = settled.high is not None and settled.high < len(settled.named)
        self._high = settled.high if few else None
        self._cap = max(1, self._low, self._high or 0)
        self._open = bool(settled.others) and (not settled.named or settled.low > len(settled.named))

    def run(self) -> Expr:
        tails = [self._rest(count) for count in range(self._cap + 1)]
        for index, (key, formula, required) in reversed(list(enumerate(self._settled.named))):
            pair = self._style.named(key, formula)
            if pair is None and required:
                raise UnsupportedConstraint(
                    f"the argument {key!r} cannot be written in this format", keyword="properties"
                )
            if pair is not None:
                tails = [self._step(pair, required, count, tails) for count in range(min(index, self._cap) + 1)]
        return tails[0]

    def _step(self, pair: Expr, required: bool, count: int, tails: list[Expr]) -> Expr:
        self._emitter.budget.spend(2, "properties")
        full = self._high is not None and count >= self._high
        after = tails[min(count + 1, self._cap)]
        take = NOTHING if full else seq(self._style.between if count else EMPTY, pair, after)
        options = take if required else alt(take, tails[count])
        return self._emitter.rules.add(options, "o") if options not in (NOTHING, EMPTY) else options

    def _rest(self, count: int) -> Expr:
        """The undeclared arguments after `count` declared ones."""
        missing = max(0, self._low - count)
        if not self._open:
            return NOTHING if missing else EMPTY
        if missing > 1:
            raise UnsupportedConstraint(f"cannot tell {missing} undeclared arguments apart", keyword="minProperties")
        budget = self._emitter.budget
        names = Strings((Piece(search_language(_EXTRA_NAME, budget)),))
        pairs = []
        for keys, formula in self._settled.others:
            allowed = keys.exact(budget).intersect(names, budget)
            if not allowed.is_empty():
                pairs.append(self._style.extra(allowed, formula))
        high = None if self._settled.high is None else max(0, self._settled.high - count)
        return _listed(alt(*pairs), missing, high, self._style.between, count > 0)


def _listed(pair: Expr, low: int, high: int | None, between: Expr, is_later: bool) -> Expr:
    """`low` (0 or 1) to `high` pairs, parted."""
    if high == 0 or pair == NOTHING:
        return NOTHING if low else EMPTY
    if is_later:
        return repeat(seq(between, pair), low, high)
    some = seq(pair, repeat(seq(between, pair), 0, None if high is None else high - 1))
    return some if low else alt(some, EMPTY)
