"""Object parts made ready for writing: which names are written out, which stay open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from guided_grammar.schema.expand import Expander
from guided_grammar.schema.formula import FALSE, Formula, both
from guided_grammar.schema.objects import Keys, ObjectPart

_MAX_LISTED = 64


@dataclass(frozen=True)
class Settled:
    """named: (name, value, required) in writing order, after them any properties of `others` (disjoint from `named`
    and from each other). low, high: number of properties. witnesses: for each, one of the others must be like this."""

    named: tuple[tuple[str, Formula, bool], ...]
    others: tuple[tuple[Keys, Formula], ...]
    low: int
    high: int | None
    witnesses: tuple[tuple[Keys, Formula], ...]

    @property
    def num_required(self) -> int:
        return sum(required for _, _, required in self.named)


def settle(part: ObjectPart, expander: Expander, is_sorted: bool) -> Iterator[Settled]:
    """The part as a union of settled ones; none when it is empty."""
    part = spell_out(part, expander)
    for option, witnesses in _witnessed(part, part.some, expander):
        named = []
        for key in sorted(option.table) if is_sorted else option.table:
            formula, required = option.table[key], key in option.required
            if expander.possible(formula):
                named.append((key, formula, required))
            elif required:
                break
        else:
            others = tuple(pair for pair in option.others(expander.budget) if _occurs(pair, expander))
            yield Settled(tuple(named), others, option.low, option.high, witnesses)


def _occurs(pair: tuple[Keys, Formula], expander: Expander) -> bool:
    keys, formula = pair
    return expander.possible(formula) and (keys.strings.is_any() or not keys.exact(expander.budget).is_empty())


def spell_out(part: ObjectPart, expander: Expander) -> ObjectPart:
    """The same set with required names, and classes and demands of few names, as declared ones."""
    extra = {key: part.value(key) for key in sorted(part.required) if key not in part.table}
    if part.default == FALSE:
        for strings, _ in part.classes:
            names = strings.finite(_MAX_LISTED)
            extra |= {name: part.value(name) for name in names or () if name not in part.table}
    for keys, _ in part.some:
        names = keys.exact(expander.budget).finite(_MAX_LISTED)
        extra |= {name: part.value(name) for name in names or () if name not in part.table}
    return replace(part, props=part.props + tuple(extra.items()))


def _witnessed(
    part: ObjectPart, some: tuple[tuple[Keys, Formula], ...], expander: Expander
) -> Iterator[tuple[ObjectPart, tuple[tuple[Keys, Formula], ...]]]:
    """Every way to meet the `some` demands: by a named property, or by one of the others."""
    if not some:
        yield part, ()
        return
    (keys, formula), *rest = some
    for key, declared in part.props:
        if keys.contains(key):
            value = both(declared, formula, expander.budget)
            if expander.possible(value):
                props = tuple((name, value if name == key else old) for name, old in part.props)
                yield from _witnessed(replace(part, props=props, required=part.required | {key}), tuple(rest), expander)
    if any(expander.possible(both(value, formula, expander.budget)) for _, value in part.others(expander.budget)):
        for option, witnesses in _witnessed(part, tuple(rest), expander):
            yield option, ((keys, formula), *witnesses)
