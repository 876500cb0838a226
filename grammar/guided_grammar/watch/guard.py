"""Takes tokens out of a mask that would make equal what must differ, or leave no way but to do so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal

import numpy as np
import xgrammar
from numpy.typing import NDArray

from guided_grammar.watch.frame import Frame, Phase
from guided_grammar.watch.marks import Watch
from guided_grammar.watch.reader import Answer, Reading
from guided_grammar.watch.shadow import Shadow, ShadowGrammar
from guided_grammar.watch.tokens import Reach, TokenIndex, among, set_bits
from guided_grammar.watch.used import Spelled

_MAX_LOOKS = 2000
_NONE = np.zeros(0, np.int64)
_COMMA, _SEPARATOR = ord(","), b", "

Readings = tuple[Reading, ...]


class Guard:
    """Follows one answer. Not thread-safe; `matcher` is the session's own and is left where it was found.

    A token survives when some reading of the answer is left after it from which the grammar leads on: where a used
    item may be spelled (`Watch.CHECK`), the matcher is asked for what may follow until the text is no beginning of one.
    """

    def __init__(
        self, matcher: xgrammar.GrammarMatcher, index: TokenIndex, readings: Readings, answer: Answer | None = None
    ) -> None:
        self._matcher, self._index, self._readings = matcher, index, readings
        self._answer = answer or Answer()
        self._history: list[tuple[Readings, int]] = []
        self._begin_to_look()

    @staticmethod
    def start(matcher: xgrammar.GrammarMatcher, index: TokenIndex, grammar: ShadowGrammar) -> Guard:
        return Guard(matcher, index, (Reading(grammar.start(), 0),))

    def fork(self, matcher: xgrammar.GrammarMatcher) -> Guard:
        """The same position over a fork of the matcher."""
        own: dict[int, Shadow] = {}

        def moved(readings: Readings) -> Readings:
            # met at its latest position first, from which it can be taken back
            for reading in readings:
                if id(reading.shadow) not in own:
                    own[id(reading.shadow)] = reading.shadow.fork(reading.position)
            return tuple(replace(reading, shadow=own[id(reading.shadow)]) for reading in readings)

        guard = Guard(matcher, self._index, moved(self._readings), Answer(bytes(self._answer.text)))
        guard._history = [(moved(readings), length) for readings, length in reversed(self._history)][::-1]
        return guard

    def accept(self, token_id: int) -> bool:
        """Follow a token that the matcher has just accepted; False, and nothing changed, when it does not survive."""
        before, length = self._readings, len(self._answer.text)
        left = self._answer.read(before, self._index.tokens[token_id], whole=True)
        self._begin_to_look()
        if not left or not self._is_live(left):
            del self._answer.text[length:]
            return False
        self._history.append((before, length))
        self._readings = left
        return True

    def rollback(self, num_tokens: int) -> None:
        """Take back the last accepted tokens, of which there are as many."""
        if num_tokens:
            self._readings, length = self._history[-num_tokens]
            del self._history[-num_tokens:], self._answer.text[length:]

    def narrow(self, words: NDArray[np.int32]) -> None:
        """Clear the bits of the tokens that do not survive."""
        self._begin_to_look()
        candidates = self._candidates(self._readings, words)
        _clear(words, [token_id for token_id in candidates if not self._survives(self._readings, token_id)])

    def _begin_to_look(self) -> None:
        """_barren: what may be added from here on that nothing follows; many tokens write one text in many ways."""
        self._looks, self._barren, self._from = _MAX_LOOKS, set[bytes](), len(self._answer.text)

    def _survives(self, readings: Readings, token_id: int) -> bool:
        """Whether a token that the matcher allows leads on."""
        length, token = len(self._answer.text), self._index.tokens[token_id]
        whole = any(frame.records for reading in readings for frame in reading.frames)
        left = self._answer.read(readings, token, whole=whole)
        live = self._status(left)
        if live is None:
            if not whole:
                del self._answer.text[length:]
                left = self._answer.read(readings, token, whole=True)
            self._matcher.accept_token(token_id)
            live = self._is_live(left)
            self._matcher.rollback(1)
        del self._answer.text[length:]
        return live

    def _is_live(self, readings: Readings) -> bool:
        """Whether anything may follow, the matcher being there too."""
        status = self._status(readings)
        if status is not None or self._looks <= 0:
            return status is not False
        ahead = bytes(self._answer.text[self._from :])
        if ahead in self._barren:
            return False
        self._looks -= 1
        bits = np.zeros((1, len(self._index.enters)), np.int32)
        if not self._matcher.fill_next_token_bitmask(bits, 0):
            return True
        # xgrammar leaves bits past the vocabulary as they are, and those would look like a way on
        tail = len(self._index.tokens) % 32
        if tail:
            bits[0, -1] &= np.int32((1 << tail) - 1)
        candidates = self._candidates(readings, bits[0])
        _clear(bits[0], candidates)
        live = bool(bits.any()) or any(self._survives(readings, token_id) for token_id in candidates)
        if not live:
            self._barren.add(ahead)
        self._note(readings, live)
        return live

    def _status(self, readings: Readings) -> bool | None:
        """Whether some reading leads on, None where that has to be looked for."""
        found: bool | None = False
        for reading in readings:
            states = [self._state(frame) for frame in reading.frames]
            if all(states):
                return True
            if False not in states:
                found = None
        return found

    def _state(self, frame: Frame) -> bool | None:
        """Whether the frame's item, or the one that is next, may become one that is not used."""
        if not frame.checks or not frame.used.keys:
            return True
        if frame.phase == Phase.COMMA:
            is_sure = frame.records or frame.is_endless or b"," in frame.used.live
            return frame.used.root.live if is_sure else None
        if frame.phase != Phase.ITEM:
            return True
        if frame.node is not None and not frame.node.live:
            return Watch.GROWS in frame.watch and self._answer.text[frame.start] in b"[{"
        if not frame.used.is_searched:
            return True
        is_near = any(spelled.is_searched for spelled in self._near(frame))
        if not is_near or self._begun(frame) in frame.used.live:
            return True
        return False if self._begun(frame) in frame.used.barren else None

    def _note(self, readings: Readings, live: bool) -> None:
        """Remember whether the one frame that was unsure here is at a dead end."""
        unsure = [frame for reading in readings for frame in reading.frames if self._state(frame) is None]
        if len(readings) == len(unsure) == 1:
            (frame,) = unsure
            noted = frame.used.live if live else frame.used.barren
            noted.add(self._begun(frame) if frame.phase == Phase.ITEM else b",")

    def _begun(self, frame: Frame) -> bytes:
        return bytes(self._answer.text[frame.start :])

    def _candidates(self, readings: Readings, words: NDArray[np.int32]) -> list[int]:
        """The legal tokens that may not survive. Those of a single reading that cannot are cleared at once."""
        found: set[int] = set()
        for reading in readings:
            sure = {token_id for frame in reading.frames for token_id in among(self._dead(frame), words)}
            if len(readings) == 1:
                _clear(words, sure)
            else:
                found |= sure
            for frame in reading.frames:
                found.update(self._towards(frame))
        legal = {token_id for token_id in found if words[token_id >> 5] >> (token_id & 31) & 1}
        for reading in readings:
            for mask in self._masks(reading):
                legal.update(set_bits(words & mask))
        return sorted(legal)

    def _masks(self, reading: Reading) -> Iterator[NDArray[np.int32]]:
        if not reading.frames:
            yield self._index.enters
            return
        reach = max(map(self._reach, reading.frames))
        yield (self._index.quoted if reading.quoted else self._index.outside)[reach]
        top = reading.frames[-1]
        if top.phase in (Phase.AFTER, Phase.COMMA) and not reading.quoted:
            yield self._index.wholes
        if top.phase == Phase.ITEM and any(isinstance(spelled.value, Decimal) for spelled in self._near(top)):
            yield self._index.zeros

    def _near(self, frame: Frame) -> list[Spelled]:
        return frame.near(self._begun(frame), self._index.longest_closing) if frame.used.values else []

    def _reach(self, frame: Frame) -> Reach:
        """What a token must hold to end two items, or to end one and begin another that is at a dead end."""
        if self._near(frame) if frame.phase == Phase.ITEM else frame.used.is_searched:
            return Reach.ANY
        if not frame.checks:
            return Reach.ITEM
        return Reach.NEXT if frame.is_endless else Reach.COMMA

    def _dead(self, frame: Frame) -> NDArray[np.int64]:
        """The tokens that go on in the item, or begin the next one, towards nothing but used ones."""
        if frame.phase == Phase.ITEM:
            return _NONE if frame.node is None else self._index.through(frame.node)
        if not frame.checks or frame.phase == Phase.OPEN or not frame.used.keys:
            return _NONE
        if frame.phase == Phase.COMMA:
            return self._index.through(frame.used.root, b" " if self._answer.text[-1] == _COMMA else b"")
        return _NONE if frame.is_keys else self._index.through(frame.used.root, _SEPARATOR)

    def _towards(self, frame: Frame) -> Iterator[int]:
        """The tokens that go on towards another spelling of a used item that may be at a dead end."""
        if not frame.used.is_searched or frame.phase == Phase.OPEN or not frame.checks:
            return
        begun, lead = b"", b""
        if frame.phase == Phase.ITEM:
            begun = self._begun(frame)
        elif frame.is_keys:
            return
        elif frame.phase == Phase.AFTER:
            lead = _SEPARATOR
        elif self._answer.text[-1] == _COMMA:
            lead = b" "
        near = self._near(frame) if frame.phase == Phase.ITEM else frame.used.values
        for spelled in near:
            if spelled.is_searched:
                for rest in spelled.endings(begun) or ():
                    yield from self._index.towards(lead + rest)


def _clear(words: NDArray[np.int32], ids: Iterable[int]) -> None:
    for token_id in ids:
        words.view(np.uint32)[token_id // 32] &= np.uint32(0xFFFFFFFF ^ (1 << (token_id % 32)))
