"""How much a grammar can force: text that it leaves no choice about, which a mask engine writes in one go.

A few rules that double force more than a machine can write. Along any one path through the grammar a choice ends what
is forced, so the first choice of one path is a bound: the one taken here prefers paths that meet a choice early.
"""

from __future__ import annotations

from dataclasses import dataclass

from guided_grammar.emit import productive
from guided_grammar.errors import LimitExceeded
from guided_grammar.ir import Alt, Expr, Ref, Repeat, Rules, Seq, Text
from guided_grammar.limits import Limits
from guided_grammar.worst_case import bottom_up


@dataclass(frozen=True)
class Run:
    """Characters that may be forced from the start of a part. ends: a choice comes then, whatever follows the part."""

    length: float
    ends: bool

    @property
    def rank(self) -> tuple[bool, float]:
        return not self.ends, self.length


_UNKNOWN = Run(float("inf"), False)
_CHOICE = Run(0, True)


def check_forced(rules: Rules, root: Expr, limits: Limits) -> None:
    """Raises LimitExceeded when some part of the grammar may force more than `limits.forced_characters`."""
    runs = _runs(rules, root)
    worst = max([_worst(root, runs), *(_worst(rules.get(Ref(name)), runs) for name in runs)])
    if worst > limits.forced_characters:
        raise LimitExceeded("forced characters", limits.forced_characters, int(worst))


def _runs(rules: Rules, root: Expr) -> dict[str, Run]:
    """The run of every productive rule."""
    order = bottom_up(rules, root, productive(rules, root))
    runs = dict.fromkeys(order, _UNKNOWN)
    changed = True
    while changed:
        changed = False
        for name in order:
            run = _run(rules.get(Ref(name)), runs)
            if run.rank < runs[name].rank:
                runs[name], changed = run, True
    return runs


def _run(expr: Expr, runs: dict[str, Run]) -> Run:
    match expr:
        case Text(text):
            return Run(len(text), False)
        case Ref(name):
            return runs.get(name, _UNKNOWN)
        case Seq(items):
            return _sequence(items, runs)
        case Alt(options):
            return min((_run(option, runs) for option in options), key=lambda run: run.rank, default=_UNKNOWN)
        case Repeat(item, low, _):
            run = _run(item, runs)
            return run if run.ends else Run(low * run.length if low else 0, False)
        case _:
            return _CHOICE


def _sequence(items: tuple[Expr, ...], runs: dict[str, Run]) -> Run:
    length = 0.0
    for item in items:
        run = _run(item, runs)
        length += run.length
        if run.ends:
            return Run(length, True)
    return Run(length, False)


def _worst(expr: Expr, runs: dict[str, Run]) -> float:
    """The longest finite run that starts anywhere in `expr`; a part without any text is never entered."""
    length = _run(expr, runs).length
    own = length if length < float("inf") else 0.0
    match expr:
        case Alt(parts) | Seq(parts):
            return max(own, *(_worst(part, runs) for part in parts)) if parts else own
        case Repeat(item, _, _):
            return max(own, _worst(item, runs))
        case _:
            return own
