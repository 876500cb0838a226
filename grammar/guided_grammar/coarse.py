"""Texts of a large automaton with a bound on their length, without multiplying its states by the bound.

What is left of the bound is only kept on a grid of a few levels. A state that repeats a class of its own is left after
a span of repetitions, which costs as much as the longest of the span; what lies between two such states costs as much
as the longest way. So no text is ever too long, and texts near the bound may be left out.
"""

from __future__ import annotations

from guided_grammar.automata import Dfa
from guided_grammar.bounded import counted
from guided_grammar.budget import Budget
from guided_grammar.ir import NOTHING, Expr, Ref, Rules, alt, chars, repeat, seq
from guided_grammar.linear import Writer
from guided_grammar.ranges import Ranges

_MOST_LEVELS, _FEWEST_LEVELS = 24, 3
_SHORT = 256
_ROOM = 3200
"""Edges, over all levels, that keep the grammar small enough for a mask engine."""

Left = int | None


def coarse(dfa: Dfa, high: int, writer: Writer, rules: Rules, budget: Budget) -> Expr:
    """Texts of `dfa` of at most `high` characters, all of them where the automaton itself bounds their length.

    `NOTHING` where the grid is too coarse for even the shortest.
    """
    return _Coarse(dfa, high, writer, rules, budget).run()


class _Coarse:
    def __init__(self, dfa: Dfa, high: int, writer: Writer, rules: Rules, budget: Budget) -> None:
        self._dfa, self._high, self._writer, self._rules, self._budget = dfa, high, writer, rules, budget
        self._hubs = _hubs(dfa)
        self._chains = _chains(dfa, self._hubs)
        self._least = [dfa.distance({state}) for state in range(dfa.num_states)]
        spans = len(_spans(high))
        cost = sum(len(dfa.edges[s]) * (spans if s in self._hubs else 1) for s in range(dfa.num_states))
        levels = max(_FEWEST_LEVELS, min(_MOST_LEVELS, _ROOM // max(1, cost)))
        self._step = -(-high // levels)
        self._refs: dict[tuple[int, Left], Ref] = {}
        self._waiting: list[tuple[int, Left]] = []

    def run(self) -> Expr:
        longest = self._dfa.max_length()
        left = None if longest is not None and longest <= self._high else self._high - self._chains[0]
        start = NOTHING if left is not None and left < 0 else self._visit(0, left)
        while self._waiting:
            state, left = self._waiting.pop()
            self._budget.spend(4)
            self._rules.define(self._refs[state, left], alt(*self._options(state, left)))
        return start

    def _visit(self, state: int, left: Left) -> Ref:
        if (state, left) not in self._refs:
            self._refs[state, left] = self._rules.reserve("near")
            self._waiting.append((state, left))
        return self._refs[state, left]

    def _options(self, state: int, left: Left) -> list[Expr]:
        """`left`: characters that may still be written from a hub on, or after the chain that another state is in."""
        loop = next((ranges for ranges, target in self._dfa.edges[state] if target == state), None)
        end = [self._writer.end] if self._dfa.accepting[state] else []
        plain = NOTHING if loop is None else chars(self._writer.plain(loop))
        if loop is None or left is None:
            steps = [seq(char, rest) for char, rest in self._steps(state, left, state in self._hubs)]
            return [seq(repeat(plain, 0, None), alt(*end, *steps))]
        options = [counted(plain, 0, left, e) for e in end]
        for low, high in _spans(left):
            after = self._steps(state, left - high, True)
            options += [seq(repeat(plain, low, high), char, rest) for char, rest in after]
        return options

    def _steps(self, state: int, left: Left, is_counted: bool) -> list[tuple[Expr, Expr]]:
        """(one character, what follows it) out of a state; a plain character of its own loop is none."""
        found: list[tuple[Expr, Expr]] = []
        for ranges, target in self._dfa.edges[state]:
            self._budget.spend(2)
            rest = self._after(target, left, is_counted)
            if rest is not None:
                found += [(char, rest) for char in self._characters(ranges, target == state)]
        return found

    def _characters(self, ranges: Ranges, is_loop: bool) -> list[Expr]:
        plain, escape = chars(self._writer.plain(ranges)), self._writer.escaped(ranges, self._rules)
        found = [] if is_loop or plain == NOTHING else [plain]
        return found if escape is None else [*found, escape]

    def _after(self, target: int, left: Left, is_counted: bool) -> Ref | None:
        """The rule of what follows a character that led to `target`, None where nothing fits."""
        if left is not None and is_counted:
            left = self._level(left - 1 - self._chains[target])
        if left is None:
            return self._visit(target, None)
        least = self._least[target]
        short = least is None or (least > left if target in self._hubs else left < 0)
        return None if short else self._visit(target, left)

    def _level(self, left: int) -> int:
        return self._high - -(-(self._high - left) // self._step) * self._step


def _spans(left: int) -> list[tuple[int, int]]:
    """Disjoint spans of how often a class is repeated before it is left, each wider than the one before."""
    spans = [(0, 0)]
    low, width, growth = 1, 2, 2 if left <= _SHORT else 4
    while low < left:
        spans.append((low, min(low + width - 1, left - 1)))
        low, width = low + width, growth * width
    if spans[-1][0] == spans[-1][1] != 0:
        spans.pop()
    return spans


def _hubs(dfa: Dfa) -> frozenset[int]:
    """States at which the bound is looked at: those with a loop, and one of every cycle of others."""
    hubs = {state for state in range(dfa.num_states) if state in dfa.targets[state]}
    done: set[int] = set()
    path: set[int] = set()
    stack = [(state, False) for state in reversed(range(dfa.num_states))]
    while stack:
        state, is_left = stack.pop()
        if is_left:
            path.discard(state)
            done.add(state)
        elif state in path:
            hubs.add(state)
        elif state not in done and state not in hubs:
            path.add(state)
            stack.append((state, True))
            stack += [(target, False) for target in dfa.targets[state]]
    return frozenset(hubs)


def _chains(dfa: Dfa, hubs: frozenset[int]) -> list[int]:
    """The most characters from each state to the next hub or the end, 0 from a hub."""
    longest = [0 if state in hubs else -1 for state in range(dfa.num_states)]
    stack = list(range(dfa.num_states))
    while stack:
        state = stack[-1]
        waiting = [target for target in dfa.targets[state] if longest[target] < 0]
        if longest[state] >= 0 or not waiting:
            stack.pop()
            if longest[state] < 0:
                longest[state] = max((1 + longest[target] for target in dfa.targets[state]), default=0)
        else:
            stack += waiting
    return longest
