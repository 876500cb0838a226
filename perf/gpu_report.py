"""The figures of a GPU check and the targets they are held to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TextIO

import torch
from stamp import stamp


@dataclass(frozen=True)
class Cell:
    """One shape. source: a vocabulary of masks.npz. masks: "dense" or "sparse". warm: logits still in the L2."""

    vocab: int
    source: str
    dtype: str
    num_rows: int
    masks: str
    warm: bool

    @property
    def element(self) -> int:
        return 4 if self.dtype == "fp32" else 2


@dataclass(frozen=True)
class Figure:
    """One implementation in one cell; microseconds of device time a step, and the floor of the work it does."""

    cell: Cell
    name: str
    us: float
    floor: float


@dataclass(frozen=True)
class Target:
    """Holds for every cell that `where` admits: `name` takes at most limit x the floor, x a peer, or limit us.

    than: "floor", "us", or the peer's name.
    """

    name: str
    than: str
    limit: float
    where: Callable[[Cell], bool]


def _large_sparse(cell: Cell) -> bool:
    return cell.num_rows >= 64 and cell.masks == "sparse"


def _dense(cell: Cell, *num_rows: int) -> bool:
    return cell.masks == "dense" and cell.num_rows in num_rows and not cell.warm


XGRAMMAR, XGRAMMAR_CUDA = "xgrammar triton apply", "xgrammar cuda apply"
SAMPLED, ARGMAX, TORCH = "xgrammar apply + torch sample", "xgrammar apply + torch argmax", "torch masked multinomial"

TARGETS = (
    Target("apply", "floor", 1.3, _large_sparse),
    Target("apply", XGRAMMAR, 1 / 2, lambda c: _large_sparse(c) and c.dtype == "fp32"),
    Target("apply", XGRAMMAR, 1 / 3, lambda c: _large_sparse(c) and c.dtype == "bf16"),
    Target("apply", XGRAMMAR, 1.05, lambda c: not _large_sparse(c)),
    Target("rows", "floor", 1.4, lambda c: _dense(c, 256) and c.dtype == "fp32"),
    Target("rows", "floor", 2.2, lambda c: _dense(c, 256) and c.dtype == "bf16"),
    Target("rows", "us", 5.0, lambda c: _dense(c, 1, 8)),
    Target("rows", SAMPLED, 1 / 6, lambda c: _dense(c, 64, 256)),
    Target("rows", SAMPLED, 1 / 4, lambda c: _dense(c, 1, 8)),
    Target("rows", TORCH, 1 / 8, lambda c: _dense(c, 1, 8, 64, 256)),
    Target("rows greedy", ARGMAX, 1 / 2, lambda c: _dense(c, 1, 8, 64, 256)),
    Target("ids", "us", 4.0, lambda c: c.masks == "sparse"),
    Target("ids 1024 filtered", "us", 12.0, lambda c: c.masks == "sparse"),
)


class Report:
    """Writes every figure and verdict as it comes; `passed` once `decide` has run."""

    def __init__(self, stream: TextIO, dry: bool) -> None:
        self._stream, self._dry = stream, dry
        self.figures: list[Figure] = []
        self.passed = True

    def machine(self, device: str) -> None:
        gpu = "none (dry run)" if device == "cpu" else torch.cuda.get_device_name()
        self._write({"machine": {**stamp(), "gpu": gpu}})

    def note(self, **values: Any) -> None:
        self._write({"note": values})

    def figure(self, figure: Figure) -> None:
        self.figures.append(figure)
        ratio = round(figure.us / figure.floor, 2)
        self._write({**asdict(figure), "us": round(figure.us, 2), "floor": round(figure.floor, 2), "ratio": ratio})

    def verdict(self, what: str, good: bool) -> None:
        self.passed &= good
        self._write({"pass": good, "what": what})
        print("PASS" if good else "FAIL", what, flush=True)

    def open(self, what: str) -> None:
        """Not measured: the question stays open, and the check has not passed."""
        self.passed &= self._dry
        self._write({"open": what})
        print("OPEN", what, flush=True)

    def decide(self) -> None:
        """Hold every target to its cells; a dry run has no times, so that its targets stay open."""
        for target in TARGETS:
            judged = list(self._judged(target))
            what = f"{target.name} <= {target.limit:.3g} x {target.than}"
            if self._dry or not judged:
                self.open(what)
            for cell, got in judged if not self._dry else []:
                self.verdict(f"{what}: {got:.3g} at {cell}", got <= target.limit)

    def _judged(self, target: Target) -> Iterator[tuple[Cell, float]]:
        by_name = {(figure.cell, figure.name): figure for figure in self.figures}
        for figure in self.figures:
            if figure.name != target.name or not target.where(figure.cell):
                continue
            peer = by_name.get((figure.cell, target.than))
            if target.than == "us":
                yield figure.cell, figure.us
            elif target.than == "floor":
                yield figure.cell, figure.us / figure.floor
            elif peer:
                yield figure.cell, figure.us / peer.us if peer.us else 0.0

    def chart(self) -> str:
        """Bars of time over floor, one per figure."""
        bars = []
        for at, figure in enumerate(self.figures):
            c = figure.cell
            label = f"{figure.name}, {c.vocab} {c.dtype} x {c.num_rows} {c.masks}{' warm' if c.warm else ''}"
            ratio, y = figure.us / figure.floor, 14 * at
            bars.append(f'<rect x="420" y="{y}" width="{min(ratio, 60) * 10:.0f}" height="11" fill="#4878a8"/>')
            bars.append(f'<text x="414" y="{y + 10}" text-anchor="end">{label}</text>')
            bars.append(f'<text x="{426 + min(ratio, 60) * 10:.0f}" y="{y + 10}">{ratio:.2f}</text>')
        size = f'width="1100" height="{14 * len(self.figures) + 4}" font-size="10" font-family="sans-serif"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(bars)}</svg>\n'

    def _write(self, record: dict[str, Any]) -> None:
        self._stream.write(json.dumps(record) + "\n")
        self._stream.flush()
