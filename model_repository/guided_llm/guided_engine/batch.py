"""What one step computes."""

from __future__ import annotations

from dataclasses import dataclass

from guided_engine.request import Choice


@dataclass(frozen=True)
class Batch:
    """Row i of the batch is in slot i of the cache and adds `chunks[i]` behind its `past[i]` cached tokens.

    sampling: rows whose chunk ends their pending tokens, so that they draw a token.
    """

    rows: tuple[Choice, ...]
    past: tuple[int, ...]
    chunks: tuple[list[int], ...]
    sampling: tuple[int, ...]

    @property
    def drawing(self) -> list[Choice]:
        """The rows that draw a token, in the order of the logits."""
        return [self.rows[i] for i in self.sampling]

    @property
    def num_tokens(self) -> int:
        return sum(map(len, self.chunks))
