"""Automaton -> right-linear grammar, in the shapes that xgrammar masks fast.

Runs of states that only count one character class become one repeated class: `[a-z]{1,63}` instead of 63 rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from guided_grammar.automata import Dfa
from guided_grammar.bounded import bounded
from guided_grammar.budget import Budget
from guided_grammar.common_edges import DENSE, Edge, Edges, common_edges, weight
from guided_grammar.ir import EMPTY, NOTHING, Alt, Expr, Ref, Repeat, Rules, Seq, alt, chars, repeat, seq
from guided_grammar.ranges import Ranges, size

_MAX_NESTING = 3
_MAX_ITEMS = 32
_MIN_RUN = 3
_MIN_LOOP_CLASS = 10


class Writer(Protocol):
    """How a character is written out, and what follows the last one."""

    @property
    def end(self) -> Expr: ...

    def plain(self, ranges: Ranges) -> Ranges:
        """The characters that are written as themselves."""
        ...

    def escaped(self, ranges: Ranges, rules: Rules) -> Expr | None:
        """One of the other characters, None if there are none."""
        ...


class Verbatim:
    """Every character as itself, nothing at the end."""

    end: Expr = EMPTY

    def plain(self, ranges: Ranges) -> Ranges:
        return ranges

    def escaped(self, ranges: Ranges, rules: Rules) -> Expr | None:
        return None


@dataclass(frozen=True)
class Run:
    """`low` to `high` characters of `ranges` (None: no bound), then the `edges` and the end of `state`."""

    ranges: Ranges
    low: int
    high: int | None
    state: int
    edges: tuple[Edge, ...]


Walk = tuple[Ranges | None, int, int, Run | None]
"""(the class of every step, steps, the state reached, the run that starts there if one does)."""


def to_expr(dfa: Dfa, writer: Writer, rules: Rules, budget: Budget) -> Expr:
    """The texts of a non-empty language as `writer` writes them."""
    return _Builder(dfa, writer, rules, budget).build()


class _Builder:
    def __init__(self, dfa: Dfa, writer: Writer, rules: Rules, budget: Budget) -> None:
        self._dfa, self._writer, self._rules, self._budget = dfa, writer, rules, budget
        self._incoming = [0] * dfa.num_states
        for state, targets in enumerate(dfa.targets):
            for target in targets - {state}:
                self._incoming[target] += 1
        self._incoming[0] += 1
        self._heads: dict[int, Ref] = {}
        self._bodies: dict[int, Expr] = {}
        self._runs: dict[int, Run | None] = {}
        self._walks: dict[int, Walk] = {}
        self._lengths: dict[tuple[int, Ranges], int] = {}
        self._entries: dict[int, Ref] = {}
        self._pending: list[tuple[Ref, Run]] = []
        self._parted = common_edges(dfa, filter(self._is_plain, range(dfa.num_states)), budget)
        self._shared: dict[Edges, Ref] = {}

    def build(self) -> Expr:
        """Bodies in post-order, so that only loops and shared states need a rule."""
        stack = [0]
        self._enter(0)
        while stack:
            state = stack[-1]
            waiting = [t for t in self._needs(state) if t not in self._bodies and t not in self._heads]
            if waiting:
                self._enter(waiting[0])
                stack.append(waiting[0])
                continue
            stack.pop()
            if state not in self._bodies:
                self._bodies[state] = self._body(state)
                if state in self._heads:
                    self._rules.define(self._heads[state], self._bodies[state])
        while self._pending:
            entry, run = self._pending.pop()
            self._rules.define(entry, seq(repeat(chars(run.ranges), 1, None), self._options(run.edges, run.state)))
        return self._follow(0)

    def _is_plain(self, state: int) -> bool:
        """Whether no run starts at `state`, or only a loop that costs less than edges shared with other states save."""
        run = self._find_run(state)
        return run is None or (run.low == 0 and run.high is None and weight(run.ranges) < DENSE)

    def _enter(self, state: int) -> None:
        run = self._runs[state] = None if state in self._parted else self._find_run(state)
        is_end = not self._dfa.targets[state]
        loops = state in self._dfa.targets[state]
        written_loop = run is not None and run.high is None and run.state == state and not self._has_escapes(run.ranges)
        if not is_end and (self._incoming[state] > 1 or (loops and not written_loop)):
            self._heads[state] = self._rules.reserve("s")

    def _has_escapes(self, ranges: Ranges) -> bool:
        return self._writer.plain(ranges) != ranges

    def _edges(self, state: int) -> tuple[Edge, ...]:
        run = self._runs[state]
        return self._dfa.edges[state] if run is None else run.edges

    def _needs(self, state: int) -> list[int]:
        run = self._runs[state]
        if run is not None and run.low == run.high:
            return [run.state]
        return [target for _, target in self._edges(state) if target != state]

    def _follow(self, state: int) -> Expr:
        if state in self._heads:
            return self._heads[state]
        body = self._bodies[state]
        return self._rules.add(body, "s") if _unwieldy(body) else body

    def _body(self, state: int) -> Expr:
        run = self._runs[state]
        self._budget.spend(1 + len(self._edges(state)))
        if state in self._parted:
            shared, own = self._parted[state]
            return alt(*(self._share(edges) for edges in shared), self._options(own, state))
        if run is None:
            return self._options(self._dfa.edges[state], state)
        plain, escape = self._writer.plain(run.ranges), self._writer.escaped(run.ranges, self._rules)
        if run.low == run.high:
            return bounded(plain, escape, run.low, run.high, self._follow(run.state), self._rules)
        tail = self._options(run.edges, run.state, counted=run.high is not None or run.low > 1)
        if run.high is None and run.low == 0 and escape is not None:
            return seq(repeat(chars(plain), 0, None), alt(tail, seq(escape, self._heads[state])))
        return bounded(plain, escape, run.low, run.high, tail, self._rules)

    def _share(self, edges: Edges) -> Ref:
        """The rule of edges that several states have."""
        if edges not in self._shared:
            self._shared[edges] = self._rules.add(alt(*self._ways(edges)), "e")
        return self._shared[edges]

    def _options(self, edges: tuple[Edge, ...], state: int, counted: bool = False) -> Expr:
        """What a state allows; behind a counted class every option starts with a character (`bounded`)."""
        end = self._writer.end if self._dfa.accepting[state] else NOTHING
        return alt(end, *self._ways(edges, counted))

    def _ways(self, edges: tuple[Edge, ...], counted: bool = False) -> Iterator[Expr]:
        for ranges, target in edges:
            plain = chars(self._writer.plain(ranges))
            yield seq(plain, self._follow(target)) if counted else self._option(ranges, target)
            escape = self._writer.escaped(ranges, self._rules)
            if escape is not None:
                yield seq(escape, self._follow(target))

    def _option(self, ranges: Ranges, target: int) -> Expr:
        """One plain character and what follows; `[a-z]+` for a loop of the same class, faster than `[a-z] [a-z]*`."""
        run = self._runs[target]
        plain = chars(self._writer.plain(ranges))
        loops = run is not None and (run.low, run.high, run.ranges) == (0, None, ranges)
        if run is None or not loops or self._has_escapes(ranges) or size(ranges) < _MIN_LOOP_CLASS:
            return seq(plain, self._follow(target))
        if target not in self._entries:
            self._entries[target] = self._rules.reserve("s")
            self._pending.append((self._entries[target], run))
        return self._entries[target]

    def _find_run(self, state: int) -> Run | None:
        ranges, low, ahead, steady = self._walk(state)
        if steady is not None and (low == 0 or steady.ranges == ranges):
            high = None if steady.high is None else low + steady.high
            return Run(steady.ranges, low, high, steady.state, steady.edges)
        if ranges is not None and low >= _MIN_RUN and not _single(ranges):
            return Run(ranges, low, low, ahead, ())
        return None

    def _walk(self, state: int) -> Walk:
        """Every state is walked over once: a walk goes on with that of its next state."""
        passed: list[int] = []
        current: int | None = state
        while current is not None and current not in self._walks:
            self._budget.spend()
            passed.append(current)
            current = self._next(current)
        for earlier in reversed(passed):
            self._walks[earlier] = self._walk_from(earlier)
        return self._walks[state]

    def _next(self, state: int) -> int | None:
        """The only state that may follow `state`, if no other state leads there."""
        edges = self._dfa.edges[state]
        if len(edges) != 1 or self._dfa.accepting[state] or self._steady(state) is not None:
            return None
        target = edges[0][1]
        return None if self._incoming[target] > 1 else target

    def _walk_from(self, state: int) -> Walk:
        steady, edges = self._steady(state), self._dfa.edges[state]
        if steady is not None or len(edges) != 1 or self._dfa.accepting[state]:
            return None, 0, state, steady
        ranges, target = edges[0]
        if self._incoming[target] > 1:
            return ranges, 1, target, None
        further, low, ahead, steady = self._walks[target]
        if further is None or further == ranges:
            return ranges, low + 1, ahead, steady
        return ranges, 1, target, None

    def _steady(self, state: int) -> Run | None:
        """The run of states from `state` on that differ only in how many more characters of one class they allow."""
        for ranges, target in self._dfa.edges[state]:
            others = _without(self._dfa.edges[state], ranges)
            if target == state:
                return Run(ranges, 0, None, state, others)
            length = self._count(state, ranges, others)
            if length >= _MIN_RUN:
                return Run(ranges, 0, length, state, others)
        return None

    def _count(self, state: int, ranges: Ranges, others: tuple[Edge, ...]) -> int:
        """Length of such a run up to a state that allows no more of `ranges`, -1 when it ends otherwise."""
        passed: list[int] = []
        current, known = state, self._lengths.get((state, ranges))
        while known is None:
            self._budget.spend()
            passed.append(current)
            target = next((t for r, t in self._dfa.edges[current] if r == ranges), None)
            if target is None:
                known = 0
                passed.pop()
            elif target == current or not self._differ_only(current, target, ranges, others):
                known = -1
            else:
                current, known = target, self._lengths.get((target, ranges))
        for distance, earlier in enumerate(reversed(passed), start=1):
            self._lengths[earlier, ranges] = -1 if known < 0 else known + distance
        return self._lengths.get((state, ranges), 0)

    def _differ_only(self, state: int, target: int, ranges: Ranges, others: tuple[Edge, ...]) -> bool:
        accepting = self._dfa.accepting
        return accepting[state] == accepting[target] and _without(self._dfa.edges[target], ranges) == others


def _without(edges: tuple[Edge, ...], ranges: Ranges) -> tuple[Edge, ...]:
    return tuple(edge for edge in edges if edge[0] != ranges)


def _single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _unwieldy(expr: Expr) -> bool:
    return (isinstance(expr, Seq) and len(expr.items) > _MAX_ITEMS) or _nesting(expr) > _MAX_NESTING


def _nesting(expr: Expr) -> int:
    match expr:
        case Seq(parts) | Alt(parts):
            return 1 + max(map(_nesting, parts), default=0)
        case Repeat(item, _, _):
            return 1 + _nesting(item)
    return 0
