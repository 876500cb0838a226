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
Measured = tuple[bool, float, float]
"""The run of a part, and the longest finite run that starts anywhere in it; endless ones are never entered."""

_UNKNOWN: Measured = (True, float("inf"), 0.0)
_CHOICE: Measured = (False, 0, 0.0)


def check_forced(rules: Rules, root: Expr, found: Reach, limits: Limits) -> None:
    """Raises LimitExceeded when some part of the grammar may force more than `limits.forced_characters`."""
    measured = _measured(rules, found)
    parts = [*((name, worst) for name, (_, _, worst) in measured.items()), ("", _measure(root, measured)[2])]
    first = next((name for name, worst in parts if worst > limits.forced_characters), None)
    if first is not None:
        got = int(max(worst for _, worst in parts))
        raise rules.origin(first).blame(LimitExceeded("forced characters", limits.forced_characters, got))


def _measured(rules: Rules, found: Reach) -> dict[str, Measured]:
    """Every productive rule; one is measured again when the run of a rule that it mentions has become shorter."""
    measured: dict[str, Measured] = {}
    users: dict[str, list[str]] = {}
    for name in found.order:
        for used in found.calls[name]:
            users.setdefault(used, []).append(name)
    queue = deque(found.order)
    while queue:
        name = queue.popleft()
        before = measured.get(name, _UNKNOWN)
        after = measured[name] = _measure(rules.get(Ref(name)), measured)
        if after[:2] != before[:2]:
            queue += [user for user in users.get(name, ()) if user in measured]
    return measured


def _measure(expr: Expr, measured: dict[str, Measured]) -> Measured:
    match expr:
        case Ref(name):
            return measured.get(name, _UNKNOWN)
        case Text(text):
            return True, len(text), len(text)
        case Seq(items):
            return _joined([_measure(item, measured) for item in items])
        case Alt(options):
            parts = [_measure(option, measured) for option in options]
            goes_on, length, _ = min(parts, default=_UNKNOWN)
            return goes_on, length, max((worst for _, _, worst in parts), default=0.0)
        case Repeat(item, low, _):
            goes_on, length, worst = _measure(item, measured)
            length = length if not goes_on else low * length if low else 0
            return goes_on, length, max(worst, _finite(length))
    return _CHOICE


def _joined(parts: list[Measured]) -> Measured:
    length, goes_on, worst = 0.0, True, 0.0
    for part in parts:
        worst = max(worst, part[2])
        if goes_on:
            goes_on, length = part[0], length + part[1]
    return goes_on, length, max(worst, _finite(length))


def _finite(length: float) -> float:
    return length if length < float("inf") else 0.0
