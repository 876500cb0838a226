"""Takes tokens out of a mask that would make equal what must differ, or leave no way but to do so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import xgrammar
from numpy.typing import NDArray

from guided_grammar.watch.marks import Watch
from guided_grammar.watch.reader import Answer, Frame, Phase, Reading
from guided_grammar.watch.shadow import Shadow, ShadowGrammar
from guided_grammar.watch.tokens import Reach, TokenIndex, among, set_bits

_MAX_LOOKS = 2000
_COMMA = ord(",")

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
        self._looks = 0

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
        self._looks = _MAX_LOOKS
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
        self._looks = _MAX_LOOKS
        candidates = self._candidates(self._readings, words)
        _clear(words, [token_id for token_id in candidates if not self._survives(self._readings, token_id)])

    def _survives(self, readings: Readings, token_id: int) -> bool:
        """Whether a token that the matcher allows leads on."""
        length = len(self._answer.text)
        token = self._index.tokens[token_id]
        left = self._answer.read(readings, token, whole=False)
        live = bool(left) and self._is_free(left)
        if left and not live:
            del self._answer.text[length:]
            left = self._answer.read(readings, token, whole=True)
            self._matcher.accept_token(token_id)
            live = self._is_live(left)
            self._matcher.rollback(1)
        del self._answer.text[length:]
        return live

    def _is_live(self, readings: Readings) -> bool:
        """Whether anything may follow, the matcher being there too."""
        if self._is_free(readings) or self._looks <= 0:
            return True
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
        if live:
            self._note(readings)
        return live

    def _is_free(self, readings: Readings) -> bool:
        """Whether some reading is no beginning of anything used."""
        return any(all(not self._is_pressed(frame) for frame in reading.frames) for reading in readings)

    def _is_pressed(self, frame: Frame) -> bool:
        if Watch.CHECK not in frame.watch or not frame.used.keys:
            return False
        if frame.phase == Phase.COMMA:
            return Watch.ENDLESS not in frame.watch and b"," not in frame.used.live
        begun = bytes(self._answer.text[frame.start :])
        return frame.phase == Phase.ITEM and begun not in frame.used.live and frame.used.is_near(begun)

    def _note(self, readings: Readings) -> None:
        """Remember that the one frame that was pressed here is not at a dead end."""
        pressed = [frame for reading in readings for frame in reading.frames if self._is_pressed(frame)]
        if len(readings) == len(pressed) == 1:
            (frame,) = pressed
            is_item = frame.phase == Phase.ITEM
            frame.used.live.add(bytes(self._answer.text[frame.start :]) if is_item else b",")

    def _candidates(self, readings: Readings, words: NDArray[np.int32]) -> set[int]:
        """The legal tokens that may not survive."""
        found: set[int] = set()
        for reading in readings:
            for mask in self._masks(reading):
                found.update(set_bits(words & mask))
            for frame in reading.frames:
                for begun, rests in self._ahead(frame):
                    found.update(self._near(frame, begun, rests, words))
        return found

    def _masks(self, reading: Reading) -> Iterator[NDArray[np.int32]]:
        if not reading.frames:
            yield self._index.enters
            return
        reach = max(map(self._reach, reading.frames))
        yield (self._index.quoted if reading.quoted else self._index.outside)[reach]
        if reading.frames[-1].phase in (Phase.AFTER, Phase.COMMA) and not reading.quoted:
            yield self._index.wholes

    def _reach(self, frame: Frame) -> Reach:
        if Watch.VALUE in frame.watch and frame.phase == Phase.ITEM and frame.used.is_near(self._begun(frame)):
            return Reach.ANY
        if Watch.CHECK not in frame.watch:
            return Reach.ITEM
        return Reach.NEXT if Watch.ENDLESS in frame.watch else Reach.COMMA

    def _begun(self, frame: Frame) -> bytes:
        return bytes(self._answer.text[frame.start :])

    def _ahead(self, frame: Frame) -> Iterator[tuple[bytes, list[bytes]]]:
        """(what stands of an item, how it may go on towards used ones) where one is begun or is next."""
        if frame.phase == Phase.ITEM:
            begun = self._begun(frame)
            yield begun, frame.used.rests(begun)
        elif Watch.CHECK in frame.watch and (frame.phase == Phase.COMMA or not frame.watch & Watch.KEYS):
            lead = b", " if frame.phase == Phase.AFTER else b" " if self._answer.text[-1] == _COMMA else b""
            if frame.phase != Phase.OPEN:
                yield b"", [lead + rest for rest in frame.used.rests(b"")]

    def _near(self, frame: Frame, begun: bytes, rests: list[bytes], words: NDArray[np.int32]) -> Iterator[int]:
        for rest in rests:
            is_whole = (begun + rest)[-1:] in (b'"', b"]", b"}")
            for end in (rest,) if is_whole else (rest + b",", rest + b"]"):
                yield from among(self._index.from_text(end), words)
            if Watch.CHECK in frame.watch:
                towards = np.array(self._index.towards(rest), np.int64)
                yield from among(towards, words)


def _clear(words: NDArray[np.int32], ids: Iterable[int]) -> None:
    for token_id in ids:
        words.view(np.uint32)[token_id // 32] &= np.uint32(0xFFFFFFFF ^ (1 << (token_id % 32)))
