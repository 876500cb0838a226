"""Counted compile work: what bounds a compile independently of the machine's clock."""

from __future__ import annotations

from guided_grammar.errors import LimitExceeded
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.place import Places


class Budget:
    """Steps spent over one whole compile. Raises LimitExceeded once a limit is passed."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.steps = 0
        self.places = Places()

    def spend(self, n: int = 1, keyword: str = "", path: str = "") -> None:
        """Count `n` steps (an automaton edge, a schema node, an emitted rule).

        The refusal names `keyword` and `path`, or else the current place.
        """
        self.steps += n
        if self.steps > self.limits.steps:
            here = self.places.current
            keyword, path = keyword or here.keyword, path or here.path
            raise LimitExceeded("compile steps", self.limits.steps, None, keyword=keyword, path=path)
