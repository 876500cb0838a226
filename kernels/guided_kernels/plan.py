"""What a step may contain, as far as the host knows: kernels with nothing to do are not launched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Promises about all rows of a step; a broken one leaves rows undrawn or unfiltered. The CPU path needs none.

    dense: some row may be UNCONSTRAINED or BITS. listed: some may be IDS or FORCED. filters: some row that isn't
    greedy may have top-k, top-p or min-p.
    """

    dense: bool = True
    listed: bool = True
    filters: bool = True


ANYTHING = Plan()
