"""Which rules of a grammar are reached, and which of those derive a text."""

from __future__ import annotations

from dataclasses import dataclass

from guided_grammar.ir import Alt, Expr, Ref, Repeat, Rules, Seq, refs


@dataclass(frozen=True)
class Reach:
    """alive: reachable rules that derive at least one text. order: those, each after the ones it mentions, except along
    a recursion. calls: the rules that each reachable one mentions. dead: whether some reachable rule is not alive."""

    alive: frozenset[str]
    order: tuple[str, ...]
    calls: dict[str, tuple[str, ...]]

    @property
    def dead(self) -> bool:
        return len(self.alive) < len(self.calls)


def reach(rules: Rules, root: Expr) -> Reach:
    """What can be reached from `root`."""
    order, calls = _post_order(rules, root)
    alive = _alive(rules, order, calls)
    return Reach(frozenset(alive), tuple(name for name in order if name in alive), calls)


def _post_order(rules: Rules, root: Expr) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    calls: dict[str, tuple[str, ...]] = {}
    order: list[str] = []
    stack = [(name, False) for name in refs(root)]
    while stack:
        name, is_left = stack.pop()
        if is_left:
            order.append(name)
        elif name not in calls:
            calls[name] = tuple(dict.fromkeys(refs(rules.get(Ref(name)))))
            stack.append((name, True))
            stack += [(used, False) for used in calls[name] if used not in calls]
    return order, calls


def _alive(rules: Rules, order: list[str], calls: dict[str, tuple[str, ...]]) -> set[str]:
    """One pass suffices but for recursions, whose rules wait for those they mention."""
    alive: set[str] = set()
    waiting: dict[str, list[str]] = {}
    queue = list(reversed(order))
    while queue:
        name = queue.pop()
        if name in alive:
            continue
        if _derives(rules.get(Ref(name)), alive):
            alive.add(name)
            queue += waiting.pop(name, ())
        else:
            for used in calls[name]:
                if used not in alive:
                    waiting.setdefault(used, []).append(name)
    return alive


def _derives(expr: Expr, alive: set[str]) -> bool:
    match expr:
        case Ref(name):
            return name in alive
        case Seq(items):
            return all(_derives(item, alive) for item in items)
        case Alt(options):
            return any(_derives(option, alive) for option in options)
        case Repeat(item, low, _):
            return low == 0 or _derives(item, alive)
    return True
