"""Syntax tree -> automaton: positions of the regex, then the subset construction.

A subset is taken before its assertions are decided: `^ $ \\b \\B` depend on the character before (START, a word
character, another) and on the one after (a word character, another, END), so the construction steps from
(subset, kind before).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from guided_grammar.alphabet import partition
from guided_grammar.automata import Dfa, make
from guided_grammar.budget import Budget
from guided_grammar.minimise import DEAD, Row
from guided_grammar.ranges import ALL, Ranges, difference
from guided_grammar.regex_syntax import Assertion, Choice, Loop, Node, Sequence, Set
from guided_grammar.unicode_classes import WORD

START, OTHER, LETTER, END = range(4)
"""Kinds of neighbour: before the text, a character outside `\\w`, one inside `\\w`, after the text."""

_HOLDS: dict[Assertion, Callable[[int, int], bool]] = {
    Assertion.START: lambda before, after: before == START,
    Assertion.END: lambda before, after: after == END,
    Assertion.BOUNDARY: lambda before, after: (before == LETTER) != (after == LETTER),
    Assertion.NO_BOUNDARY: lambda before, after: (before == LETTER) == (after == LETTER),
}

_BYTES_PER_STATE, _BYTES_PER_MEMBER, _BYTES_PER_EDGE = 8, 4, 12
"""Working memory as a packed automaton would need it; what `Limits.automaton_bytes` bounds."""

_MAX_LOOPS = 64

_MEMBERS_PER_STEP = 16
"""Joining two sets is that much quicker for each member than following an edge."""

Watch = Callable[[int], None]


def automaton(node: Node, search: bool, budget: Budget, watch: Watch) -> Dfa:
    """The texts that match as a whole, or with `search` those that contain a match.

    `watch(bytes)` is told the working memory needed so far, and raises to stop.
    """
    nfa = _Nfa(watch)
    if search:
        nfa.everything = nfa.reading(ALL, None)
        body = nfa.build(node, nfa.everything)
        nfa.start = nfa.empty([(None, body)])
        nfa.moves[nfa.start].append((None, nfa.reading(ALL, nfa.start)))
    else:
        nfa.final = nfa.empty([])
        nfa.start = nfa.build(node, nfa.final)
    return _Subsets(nfa, budget, watch).run()


class _Nfa:
    """A state either reads one character, or has empty moves, some under an assertion."""

    def __init__(self, watch: Watch) -> None:
        self.reads: list[tuple[Ranges, int] | None] = []
        self.moves: list[list[tuple[Assertion | None, int]]] = []
        self.start = 0
        self.final = self.everything = DEAD
        self.loops: list[tuple[int, Ranges]] = []
        self.ranks: dict[int, tuple[int, int]] = {}
        self._watch = watch

    def empty(self, moves: list[tuple[Assertion | None, int]]) -> int:
        return self._add(None, moves)

    def reading(self, ranges: Ranges, target: int | None) -> int:
        """A state that reads one character; target None is the state itself."""
        return self._add((ranges, len(self.reads) if target is None else target), [])

    def _add(self, read: tuple[Ranges, int] | None, moves: list[tuple[Assertion | None, int]]) -> int:
        self.reads.append(read)
        self.moves.append(moves)
        self._watch(len(self.reads) * _BYTES_PER_STATE)
        return len(self.reads) - 1

    def build(self, node: Node, then: int) -> int:
        """The state from which `node` and then state `then` is read."""
        match node:
            case Set(ranges):
                return self.reading(ranges, then)
            case Sequence(items):
                for item in reversed(items):
                    then = self.build(item, then)
                return then
            case Choice(options):
                return self.empty([(None, self.build(option, then)) for option in options])
            case Loop(item, low, high):
                return self._loop(item, low, high, then)
            case Assertion():
                return self.empty([(node, then)])

    def _loop(self, item: Node, low: int, high: int | None, then: int) -> int:
        after = then
        if high is None:
            after = self.empty([(None, then)])
            self.moves[after].append((None, self.build(item, after)))
            if isinstance(item, Set) and len(self.loops) < _MAX_LOOPS:
                self.loops.append((after, item.ranges))
        else:
            chain = len(self.reads)
            for left in range(1, high - low + 1):
                after = self.empty([(None, then), (None, self.build(item, after))])
                self.ranks[after] = (chain, left)
        for _ in range(low):
            after = self.build(item, after)
        return after

    def useful(self) -> set[int]:
        """States that can still lead to a match when something was read before."""
        sources: list[list[int]] = [[] for _ in self.reads]
        for state, read in enumerate(self.reads):
            targets = [target for assertion, target in self.moves[state] if assertion is not Assertion.START]
            for target in [*targets, *([read[1]] if read is not None and read[0] else [])]:
                sources[target].append(state)
        return _behind({self.final, self.everything} - {DEAD}, sources)

    def confined(self, ranges: Ranges) -> set[int]:
        """States from which only characters of `ranges` can ever be read."""
        sources: list[list[int]] = [[] for _ in self.reads]
        outside: set[int] = set()
        for state, read in enumerate(self.reads):
            if read is not None and difference(read[0], ranges):
                outside.add(state)
            for target in [*(target for _, target in self.moves[state]), *([read[1]] if read is not None else [])]:
                sources[target].append(state)
        return set(range(len(self.reads))) - _behind(outside, sources)


def _behind(states: set[int], sources: list[list[int]]) -> set[int]:
    found = set(states)
    stack = list(found)
    while stack:
        for source in sources[stack.pop()]:
            if source not in found:
                found.add(source)
                stack.append(source)
    return found


Subset = tuple[frozenset[int], int]


class _Subsets:
    """The subset construction. A subset is closed under empty moves only once the character after it is known."""

    def __init__(self, nfa: _Nfa, budget: Budget, watch: Watch) -> None:
        self._nfa, self._budget, self._watch = nfa, budget, watch
        used = {assertion for moves in nfa.moves for assertion, _ in moves}
        self._bounded = bool(used & {Assertion.BOUNDARY, Assertion.NO_BOUNDARY})
        self._useful = nfa.useful()
        sets = list({read[0] for read in nfa.reads if read is not None})
        self._alphabet, members = partition([WORD, *sets])
        self._kinds = [LETTER if self._bounded and 0 in inside else OTHER for inside in members]
        index = {ranges: [a for a, inside in enumerate(members) if i in inside] for i, ranges in enumerate(sets, 1)}
        self._atoms = [[] if read is None else index[read[0]] for read in nfa.reads]
        self._closures: dict[tuple[int, int, int], tuple[tuple[int, ...], bool]] = {}
        self._covered = self._find_covered()

    def _find_covered(self) -> dict[int, set[int]]:
        """For each loop that accepts all texts of a class, the states that accept nothing else and so add nothing."""
        accepting = [
            (state, ranges)
            for state, ranges in self._nfa.loops
            if all(self._closure(state, before, END)[1] for before in (OTHER, LETTER))
        ]
        return {state: self._nfa.confined(ranges) - {state} for state, ranges in accepting}

    def run(self) -> Dfa:
        start: Subset = (frozenset({self._nfa.start}), START)
        numbers, order = {start: 0}, [start]
        rows: list[Row] = []
        accepting: list[bool] = []
        size = 0
        for subset in order:
            row: dict[int, int] = {}
            for atom, target in self._steps(subset):
                if target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                    size += _BYTES_PER_STATE + _BYTES_PER_MEMBER * len(target[0])
                row[atom] = numbers[target]
            size += _BYTES_PER_EDGE * len(set(row.values()))
            self._watch(size)
            rows.append((DEAD, tuple(sorted(row.items()))))
            accepting.append(any(self._closure(state, subset[1], END)[1] for state in subset[0]))
        return make(self._alphabet, rows, accepting, self._budget)

    def _steps(self, subset: Subset) -> Iterator[tuple[int, Subset]]:
        members, before = subset
        targets: dict[int, set[int]] = {}
        for kind in {*self._kinds}:
            closures = [self._closure(member, before, kind)[0] for member in members]
            self._budget.spend(sum(map(len, closures)) // _MEMBERS_PER_STEP)
            for state in {state for closure in closures for state in closure}:
                read = self._nfa.reads[state]
                assert read is not None
                if read[1] in self._useful:
                    self._add(targets, state, read[1], kind)
        for atom, found in targets.items():
            if self._nfa.everything in found:
                yield atom, (frozenset({self._nfa.everything}), OTHER)
                continue
            yield atom, (frozenset(self._essential(found)), self._kinds[atom])

    def _essential(self, found: set[int]) -> set[int]:
        """Without states whose continuations another state of the subset has too."""
        for loop in found & self._covered.keys():
            if loop in found:
                found -= self._covered[loop]
        ranked = [(self._nfa.ranks[state], state) for state in found if state in self._nfa.ranks]
        most = {chain: state for (chain, _), state in sorted(ranked)}
        return found - {state for (chain, _), state in ranked if state != most[chain]}

    def _add(self, targets: dict[int, set[int]], state: int, target: int, kind: int) -> None:
        atoms = self._atoms[state]
        self._budget.spend(len(atoms))
        for atom in atoms:
            if self._kinds[atom] == kind:
                targets.setdefault(atom, set()).add(target)

    def _closure(self, state: int, before: int, after: int) -> tuple[tuple[int, ...], bool]:
        """The reading states behind empty moves from `state`, and whether a match may end here."""
        key = (state, before, after)
        if key not in self._closures:
            seen = self._reach(state, before, after)
            self._budget.spend(len(seen))
            reading = tuple(s for s in seen if self._nfa.reads[s] is not None)
            self._closures[key] = (reading, bool(seen & {self._nfa.final, self._nfa.everything}))
        return self._closures[key]

    def _reach(self, state: int, before: int, after: int) -> set[int]:
        seen = {state}
        stack = [state]
        while stack:
            for assertion, target in self._nfa.moves[stack.pop()]:
                if target not in seen and (assertion is None or _HOLDS[assertion](before, after)):
                    seen.add(target)
                    stack.append(target)
        return seen
