"""How much a grammar can force: text that it leaves no choice about, which a mask engine writes in one go.

A few rules that double force more than a machine can write. Along any one path through the grammar a choice ends what
is forced, so the first choice of one path is a bound: the one taken here prefers paths that meet a choice early.
"""

from __future__ import annotations

from collections import deque

from guided_grammar.errors import LimitExceeded
from guided_grammar.ir import Alt, Expr, Ref, Repeat, Rules, Seq, Text
from guided_grammar.limits import Limits
from guided_grammar.reach import Reach

Run = tuple[bool, float]
"""(whether what follows a part may be forced as well, the characters that may be forced from the part's start): the
least of several is the one that meets a choice first."""

_UNKNOWN: Run = (True, float("inf"))
_CHOICE: Run = (False, 0)


def check_forced(rules: Rules, root: Expr, found: Reach, limits: Limits) -> None:
    """Raises LimitExceeded when some part of the grammar may force more than `limits.forced_characters`."""
    runs = _runs(rules, found)
    worst = max([_worst(root, runs), *(_worst(rules.get(Ref(name)), runs) for name in found.order)])
    if worst > limits.forced_characters:
        raise LimitExceeded("forced characters", limits.forced_characters, int(worst))


def _runs(rules: Rules, found: Reach) -> dict[str, Run]:
    """The run of every productive rule; a rule is measured again when one that it mentions is."""
    runs: dict[str, Run] = {}
    users: dict[str, list[str]] = {}
    for name in found.order:
        for used in found.calls[name]:
            users.setdefault(used, []).append(name)
    queue = deque(found.order)
    measured: set[str] = set()
    while queue:
        name = queue.popleft()
        measured.add(name)
        run = _run(rules.get(Ref(name)), runs)
        if run < runs.get(name, _UNKNOWN):
            runs[name] = run
            queue += [user for user in users.get(name, ()) if user in measured]
    return runs


def _run(expr: Expr, runs: dict[str, Run]) -> Run:
    match expr:
        case Ref(name):
            return runs.get(name, _UNKNOWN)
        case Text(text):
            return True, len(text)
        case Seq(items):
            length = 0.0
            for item in items:
                goes_on, more = _run(item, runs)
                length += more
                if not goes_on:
                    return False, length
            return True, length
        case Alt(options):
            return min((_run(option, runs) for option in options), default=_UNKNOWN)
        case Repeat(item, low, _):
            run = _run(item, runs)
            return (True, low * run[1] if low else 0) if run[0] else run
        case _:
            return _CHOICE


def _worst(expr: Expr, runs: dict[str, Run]) -> float:
    """The longest finite run that starts anywhere in `expr`; a part without any text is never entered."""
    length = _run(expr, runs)[1]
    own = length if length < float("inf") else 0.0
    match expr:
        case Alt(parts) | Seq(parts):
            return max([own, *(_worst(part, runs) for part in parts if not isinstance(part, Ref))])
        case Repeat(item, _, _):
            return max(own, _worst(item, runs))
        case _:
            return own
