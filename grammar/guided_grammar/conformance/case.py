"""What a corpus asks of the compiler, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from guided_grammar.spec import GrammarSpec


@dataclass(frozen=True)
class Instance:
    """A text that a constraint must accept or reject.

    A JSON `value` stands for its text: valid ones in the canonical spelling, invalid ones in that and as written.
    """

    valid: bool
    text: str | None = None
    value: Any = None


@dataclass(frozen=True)
class Case:
    """One constraint with its instances. `group`: the line of the table it counts in."""

    id: str
    group: str
    spec: GrammarSpec
    instances: tuple[Instance, ...] = ()


class Status(str, Enum):
    """`ENFORCED` claims exactness; the others promise nothing.

    UNSATISFIABLE is the refusal of a constraint that no text satisfies, and of which the corpus knows no valid one.
    """

    ENFORCED = "enforced"
    REFUSED = "refused"
    UNSATISFIABLE = "unsatisfiable"
    TIMEOUT = "timeout"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Verdict:
    """What one case came to. `rejected` and `accepted` index its instances: valid ones refused, invalid ones let in.

    compile_ms is the CPU time of our part, mask_ms what the masks of the measured vocabulary took before the first
    token (CPU time of all threads, or less where they ran side by side), fill_us the CPU time of each mask along the
    instances.
    """

    id: str
    group: str
    status: Status
    reason: str = ""
    keyword: str = ""
    num_valid: int = 0
    num_invalid: int = 0
    rejected: tuple[int, ...] = ()
    accepted: tuple[int, ...] = ()
    compile_ms: float = 0.0
    mask_ms: float = 0.0
    grammar_bytes: int = 0
    fill_us: tuple[float, ...] = ()
