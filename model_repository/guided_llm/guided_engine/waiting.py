"""Who waits for a row, and who gets the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from guided_engine.request import Choice, Request

_REMEMBERED = 1024


class WaitingLine:
    """Choices in the order in which they should run: the lowest `priority` first; among those, what was sent back for
    want of cache; then the client with the fewest running rows, of these the one served longest ago; then by arrival.

    So a client with a thousand requests delays another's one by a row, not by a thousand. Used by one thread.
    """

    def __init__(self) -> None:
        self._choices: list[Choice] = []
        self._num_started = 0
        self._last_started: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._choices)

    def __iter__(self) -> Iterator[Choice]:
        return iter(self._choices)

    def add(self, choices: Iterable[Choice]) -> None:
        self._choices.extend(choices)

    def remove(self, request: Request) -> None:
        """Take every choice of a request out."""
        self._choices = [c for c in self._choices if c.request is not request]

    def first(self, running: Sequence[Choice]) -> Choice | None:
        """The choice to start next, left where it is; None when nothing that waits can start."""
        rows: dict[str, int] = {}
        for choice in running:
            client = choice.request.sampling.client
            rows[client] = rows.get(client, 0) + 1

        def place(choice: Choice) -> tuple[int, bool, int, int, float, int]:
            sampling, arrival = choice.request.sampling, choice.request.timings.arrival
            served = self._last_started.get(sampling.client, 0)
            return (
                sampling.priority, not choice.num_preempted, rows.get(sampling.client, 0), served, arrival, choice.index
            )  # fmt: skip

        return min((c for c in self._choices if not c.waits_for_sibling), key=place, default=None)

    def take(self, choice: Choice) -> None:
        """`choice` starts."""
        self._choices.remove(choice)
        self._num_started += 1
        client = choice.request.sampling.client
        self._last_started.pop(client, None)
        self._last_started[client] = self._num_started
        if len(self._last_started) > _REMEMBERED:
            self._last_started.pop(next(iter(self._last_started)))
