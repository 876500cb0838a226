"""Stop strings: where an answer ends although neither model nor grammar ended it."""

from __future__ import annotations


class StopStrings:
    """Holds back text that may be the beginning of a stop string, and cuts the answer where one is found.

    A free answer is cut right before the stop string. A constrained one is cut only where the text before it is a
    whole document: at the last token boundary before the stop string, and only if the grammar let the answer end
    there; anywhere else the stop string is ordinary text. So a document is never cut silently.
    """

    def __init__(self, stops: tuple[str, ...], constrained: bool = False) -> None:
        self._stops, self._constrained = tuple(s for s in stops if s), constrained
        self._held, self._from = "", 0
        self._boundaries: list[tuple[int, bool]] = []
        self.hit = ""

    @property
    def is_hit(self) -> bool:
        return self.hit != ""

    def push(self, text: str, was_complete: bool) -> str:
        """Text to release after a token that wrote `text`; was_complete: the answer could have ended before it."""
        if not self._stops:
            return text
        self._boundaries.append((len(self._held), was_complete))
        self._held += text
        while (found := self._find()) is not None:
            cut = self._cut(found)
            if cut is not None:
                self.hit = next(stop for stop in self._stops if self._held.startswith(stop, found))
                return self._release(cut)
            self._from = found + 1
        return self._release(self._boundary(self._safe())[0] if self._constrained else self._safe())

    def flush(self) -> str:
        """What is still held, when the answer ended for another reason."""
        return self._release(len(self._held))

    def _find(self) -> int | None:
        hits = [at for stop in self._stops if (at := self._held.find(stop, self._from)) >= 0]
        return min(hits, default=None)

    def _cut(self, found: int) -> int | None:
        if not self._constrained:
            return found
        offset, was_complete = self._boundary(found)
        return offset if was_complete else None

    def _boundary(self, at: int) -> tuple[int, bool]:
        return max((b for b in self._boundaries if b[0] <= at), key=lambda b: b[0], default=(0, False))

    def _safe(self) -> int:
        """Where the longest tail that could begin a stop string starts."""
        longest = max(map(len, self._stops)) - 1
        for start in range(max(self._from, len(self._held) - longest), len(self._held)):
            if any(stop.startswith(self._held[start:]) for stop in self._stops):
                return start
        return len(self._held)

    def _release(self, end: int) -> str:
        text, self._held = self._held[:end], self._held[end:]
        self._from = max(0, self._from - end)
        self._boundaries = [(offset - end, complete) for offset, complete in self._boundaries if offset >= end]
        return text
