"""Objects of which some undeclared properties must be like this: rules over the demands that are not met yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.ir import EMPTY, NOTHING, Expr, alt, repeat, seq, text
from guided_grammar.schema.formula import TRUE, Formula, both
from guided_grammar.schema.objects import Keys
from guided_grammar.schema.room import ENDLESS, num_strings
from guided_grammar.schema.settle import Settled

if TYPE_CHECKING:
    from guided_grammar.schema.emit import Emitter

_COMMA = text(", ")
_MAX_DEMANDS = 6


class Witnesses:
    """A rule stands for (demands not met yet, number of properties so far). Any property may meet any number of them.

    Names must be told apart (`watch`), or a later property could replace the one that met a demand. low, high: number
    of properties that makes a difference, `high` None for any. pairs: the undeclared properties. rest: what follows
    when every demand is met, by the number of properties.
    Raises UnsupportedConstraint where names could run out before a demand is met, or there are too many demands.
    """

    def __init__(
        self,
        emitter: Emitter,
        settled: Settled,
        pairs: Sequence[Expr],
        cap: int,
        high: int | None,
        rest: Callable[[int], Expr],
    ) -> None:
        self._emitter, self._settled, self._pairs = emitter, settled, alt(*pairs)
        self._cap, self._high, self._rest = cap, high, rest
        self._rules: dict[tuple[frozenset[int], int], Expr] = {}
        self._proofs: dict[frozenset[int], Expr] = {}
        if len(settled.witnesses) > _MAX_DEMANDS or not emitter.can_watch:
            raise UnsupportedConstraint("asks too much of undeclared properties at once", keyword="not")
        for demand in range(len(settled.witnesses)):
            self._check_names(demand)

    def _check_names(self, demand: int) -> None:
        inside = [keys.exact(self._emitter.budget) for keys, _, _ in self._meeting(frozenset({demand}))]
        sizes = [num_strings(names, ENDLESS) for names in inside if not names.is_empty()]
        if sizes and max(sizes) < ENDLESS:
            raise UnsupportedConstraint("asks for undeclared properties of too few names", keyword="not")

    def run(self, count: int) -> Expr:
        """What follows `count` properties, and the closing brace."""
        return self._rule(frozenset(range(len(self._settled.witnesses))), count)

    def _rule(self, demands: frozenset[int], count: int) -> Expr:
        if not demands:
            return self._rest(count)
        found = self._rules.get((demands, count))
        if found is None:
            body = self._body(demands, count)
            found = body if body == NOTHING else self._emitter.rules.add(body, "w")
            self._rules[demands, count] = found
        return found

    def _body(self, demands: frozenset[int], count: int) -> Expr:
        if self._high is not None and count >= self._high:
            return NOTHING
        self._emitter.budget.spend(1 << len(demands), "not")
        after = min(count + 1, self._cap)
        options = [seq(self._proof(met), self._rule(demands - met, after)) for met in _subsets(demands)]
        if after == count:
            return seq(repeat(seq(_COMMA, self._pairs), 0, None), _COMMA, alt(*options))
        options.append(seq(self._pairs, self._rule(demands, after)))
        return seq(_COMMA if count else EMPTY, alt(*options))

    def _proof(self, met: frozenset[int]) -> Expr:
        """A property that meets all of `met`."""
        found = self._proofs.get(met)
        if found is None:
            options = []
            for keys, value, formula in self._meeting(met):
                proof = self._emitter.value(both(value, formula, self._emitter.budget))
                if proof != NOTHING and not keys.exact(self._emitter.budget).is_empty():
                    options.append(seq(self._emitter.keys.write(keys), proof))
            found = self._proofs[met] = alt(*options)
        return found

    def _meeting(self, met: frozenset[int]) -> Iterator[tuple[Keys, Formula, Formula]]:
        """(names, what they hold anyway, what they must hold) of the undeclared properties that could meet `met`."""
        budget = self._emitter.budget
        for keys, value in self._settled.others:
            formula = TRUE
            for demand in sorted(met):
                names, wanted = self._settled.witnesses[demand]
                keys, formula = keys.both(names, budget), both(formula, wanted, budget)
            if self._emitter.expander.possible(both(value, formula, budget)):
                yield keys, value, formula


def _subsets(demands: frozenset[int]) -> Iterator[frozenset[int]]:
    for size in range(1, len(demands) + 1):
        yield from map(frozenset, combinations(sorted(demands), size))
