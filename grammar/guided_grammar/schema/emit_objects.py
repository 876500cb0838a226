"""Object parts -> grammar: a chain of rules over the declared names, then any number of other properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guided_grammar.errors import LimitExceeded, UnsupportedConstraint
from guided_grammar.ir import EMPTY, NOTHING, Expr, alt, repeat, seq, text
from guided_grammar.schema.emit_keys import key_text
from guided_grammar.schema.emit_witnesses import Witnesses
from guided_grammar.schema.formula import both
from guided_grammar.schema.objects import Keys, ObjectPart
from guided_grammar.schema.room import ENDLESS, is_open, num_strings
from guided_grammar.schema.settle import Settled, settle
from guided_grammar.watch.marks import Watch

if TYPE_CHECKING:
    from guided_grammar.schema.emit import Emitter

_COMMA, _CLOSE = text(", "), text("}")
_MAX_COUNT = 4096


def objects(emitter: Emitter, part: ObjectPart) -> Expr:
    """The texts of the objects of `part`."""
    options = (_Writer(emitter, settled).run() for settled in settle(part, emitter.expander, emitter.is_sorted))
    return alt(*(seq(text("{"), option) for option in options))


def _keys_watch(emitter: Emitter, settled: Settled) -> Watch:
    """How to watch the names that are not declared."""
    known = [keys for keys, _ in settled.others]
    known += [keys.both(wanted, emitter.budget) for keys in known for wanted, _ in settled.witnesses]
    names = [keys.strings if keys.strings.is_any() else keys.exact(emitter.budget) for keys in known]
    if all(map(is_open, names)):
        return Watch.KEYS | Watch.ENDLESS
    is_endless = any(num_strings(strings, ENDLESS) >= ENDLESS for strings in names)
    found = Watch.KEYS | Watch.CHECK | (Watch.ENDLESS if is_endless else Watch(0))
    # what may be written while declared names still can is no measure of what may be later
    return found | Watch.SEARCH if settled.witnesses or settled.named else found


class _Writer:
    """The rules of one settled object. A rule stands for (next declared name, number of properties so far);
    the number only goes as far as it makes a difference."""

    def __init__(self, emitter: Emitter, settled: Settled) -> None:
        self._emitter, self._settled = emitter, settled
        self._low = settled.low if settled.low > settled.num_required else 0
        bounded = settled.high is not None and (settled.others or settled.high < len(settled.named))
        self._high = settled.high if bounded else None
        self._cap = max(1, self._low, self._high or 0)
        self._is_watched = emitter.tells_keys and bool(settled.others)
        if self._cap > _MAX_COUNT:
            name = "minProperties" if self._low == self._cap else "maxProperties"
            raise LimitExceeded("counted properties", _MAX_COUNT, self._cap, keyword=name)

    def run(self) -> Expr:
        """What follows the opening brace."""
        self._pairs = [
            seq(self._emitter.keys.write(keys), self._emitter.value(formula)) for keys, formula in self._settled.others
        ]
        self._witnesses = self._counted_witnesses()
        tails = [self._others(count) for count in range(self._cap + 1)]
        for index, (key, formula, required) in reversed(list(enumerate(self._settled.named))):
            pair = seq(key_text(key), self._emitter.value(formula))
            tails = [self._step(index, pair, required, count, tails) for count in range(min(index, self._cap) + 1)]
        mark = self._emitter.watch(_keys_watch(self._emitter, self._settled)) if self._is_watched else EMPTY
        return seq(mark, tails[0])

    def _counted_witnesses(self) -> Witnesses | None:
        """None where a single demand can be met without telling names apart, or there is none."""
        num = len(self._settled.witnesses)
        if num == 0 or (num == 1 and self._high is None and self._low <= 1):
            return None
        found = Witnesses(self._emitter, self._settled, self._pairs, self._cap, self._high, self._free)
        self._is_watched = True
        return found

    def _step(self, index: int, pair: Expr, required: bool, count: int, tails: list[Expr]) -> Expr:
        self._emitter.budget.spend(2, "properties")
        after = tails[min(count + 1, self._cap)]
        full = self._high is not None and count >= self._high
        take = NOTHING if full else seq(_COMMA if count else EMPTY, pair, after)
        options = take if required else alt(take, tails[count])
        return self._emitter.rules.add(options, "o") if index or count else options

    def _others(self, count: int) -> Expr:
        """The undeclared properties after `count` declared ones, and the closing brace."""
        if self._witnesses is not None:
            return self._witnesses.run(count)
        return self._witnessed(count) if self._settled.witnesses else self._free(count)

    def _free(self, count: int) -> Expr:
        """The same without demands on them, or with all demands met."""
        missing = max(0, self._low - count)
        if not self._pairs:
            return _CLOSE if not missing else NOTHING
        if missing > 1 and not self._has_names(missing):
            return NOTHING
        high = None if self._high is None else self._high - count
        if high is not None and high < missing:
            return NOTHING
        pair = alt(*self._pairs)
        if count:
            return self._emitter.rules.add(seq(repeat(seq(_COMMA, pair), missing, high), _CLOSE), "p")
        if high == 0:
            return _CLOSE
        more = repeat(seq(_COMMA, pair), max(0, missing - 1), None if high is None else high - 1)
        some = seq(pair, more, _CLOSE)
        return self._emitter.rules.add(some if missing else alt(_CLOSE, some), "p")

    def _has_names(self, count: int) -> bool:
        """Watch the names from now on; False where there are fewer than `count` different ones."""
        if not self._emitter.can_watch:
            raise UnsupportedConstraint(f"cannot tell {count} undeclared properties apart", keyword="minProperties")
        self._is_watched = True
        names = (keys.exact(self._emitter.budget) for keys, _ in self._settled.others)
        return sum(num_strings(strings, count) for strings in names) >= count

    def _witnessed(self, count: int) -> Expr:
        """One of the others is the witness: the last of its names, as later duplicates replace earlier ones."""
        settled = self._settled
        ((names, formula),) = settled.witnesses
        proofs, after = [], []
        for keys, value in settled.others:
            inside = keys.both(names, self._emitter.budget)
            proof = self._emitter.value(both(value, formula, self._emitter.budget))
            if proof != NOTHING and not inside.exact(self._emitter.budget).is_empty():
                proofs.append(seq(self._emitter.keys.write(inside), proof))
            after += self._outside(keys, names, self._emitter.value(value))
        ahead = repeat(seq(alt(*self._pairs), _COMMA), 0, None)
        later = repeat(seq(_COMMA, alt(*proofs, *after)), 0, None)
        body = seq(_COMMA if count else EMPTY, ahead, alt(*proofs), later, _CLOSE)
        return self._emitter.rules.add(body, "w")

    def _outside(self, keys: Keys, names: Keys, value: Expr) -> list[Expr]:
        """Properties of `keys` that are none of `names`."""
        budget = self._emitter.budget
        apart = keys.exact(budget).intersect(names.exact(budget).complement(budget), budget)
        if apart.is_empty():
            return []
        return [seq(self._emitter.keys.write(Keys(apart)), value)]
