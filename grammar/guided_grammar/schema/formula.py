"""Boolean formulas over schema nodes, in disjunctive normal form.

An atom is a positive number, its negation the negative number. A clause is a set of literals (their conjunction), a
formula a set of clauses (their disjunction). Formulas are values: equal sets mean the same schema, so a recursive
schema has finitely many of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from guided_grammar.budget import Budget

Clause = frozenset[int]
Formula = frozenset[Clause]

TRUE: Formula = frozenset({frozenset()})
FALSE: Formula = frozenset()


def literal(atom: int) -> Formula:
    return frozenset({frozenset({atom})})


def _absorb(clauses: Iterable[Clause], budget: Budget) -> Formula:
    """Drop clauses implied by a shorter one; join two that differ in the sign of one atom only."""
    kept: list[Clause] = []
    for clause in sorted(set(clauses), key=len):
        budget.spend(1 + len(kept))
        if not any(other <= clause for other in kept):
            kept.append(clause)
    if len(kept) <= 16:
        for a, b in combinations(kept, 2):
            signs = a ^ b
            if len(signs) == 2 and sum(signs) == 0:
                return _absorb([c for c in kept if c not in (a, b)] + [a & b], budget)
    return frozenset(kept)


def either(a: Formula, b: Formula, budget: Budget) -> Formula:
    """a or b."""
    if a in (b, TRUE) or not b:
        return a
    if not a or b == TRUE:
        return b
    return _absorb(a | b, budget)


def both(a: Formula, b: Formula, budget: Budget) -> Formula:
    """a and b."""
    if b in (a, TRUE) or not a:
        return a
    if not b or a == TRUE:
        return b
    budget.spend(len(a) * len(b))
    products = (x | y for x in a for y in b)
    return _absorb((c for c in products if not any(-atom in c for atom in c)), budget)


def negate(a: Formula, budget: Budget) -> Formula:
    """not a."""
    result = TRUE
    for clause in a:
        result = both(result, frozenset(frozenset({-atom}) for atom in clause), budget)
    return result
