"""Where in a constraint a compile is, so that what it cannot afford is refused by name and place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from guided_grammar.errors import GrammarError


@dataclass(frozen=True)
class Place:
    """keyword, path: as in `GrammarError`, the path below `above`. owner: what a reader knows it by ("tool 'add'")."""

    keyword: str = ""
    path: str = ""
    above: str = ""
    owner: str = ""

    def blame(self, error: GrammarError) -> GrammarError:
        """`error`, which nobody has placed yet, at this place."""
        error.keyword, error.path = self.keyword, self.above + self.path
        error.reason = f"{self.owner}: {error.reason}" if self.owner else error.reason
        error.args = (error.message,)
        return error


class Places:
    """The current place of one compile: what it compiles inside of a `with` is there."""

    def __init__(self) -> None:
        self.current = Place()

    @contextmanager
    def at(self, keyword: str, path: str) -> Iterator[None]:
        """Inside of the same owner."""
        yield from self._inside(replace(self.current, keyword=keyword, path=path))

    @contextmanager
    def within(self, keyword: str, above: str, owner: str) -> Iterator[None]:
        """A part of the constraint whose own paths start at `above`."""
        yield from self._inside(Place(keyword, "", above, owner))

    def _inside(self, place: Place) -> Iterator[None]:
        before, self.current = self.current, place
        try:
            yield
        finally:
            self.current = before
