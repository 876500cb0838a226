"""How many tokens prompt and answer may have together: what the engine said, else what it is configured to say."""

from __future__ import annotations

from collections.abc import Iterable

from guided_engine.protocol import Event

from guided_frontend.served import ServedModel


class Contexts:
    """The engine's bound depends on its memory and settings, so only the engine knows it; every answer tells it."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}

    def learn(self, triton_name: str, events: Iterable[Event]) -> None:
        """Takes what the last event of an answer says."""
        for event in events:
            if event.context is not None:
                self._told[triton_name] = event.context

    def of(self, model: ServedModel) -> int | None:
        """None while neither the engine nor a setting has said it: then the engine decides alone."""
        return self._told.get(model.triton_name, model.context)
