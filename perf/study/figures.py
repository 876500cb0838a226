"""Plots of a run's results as SVG, on a transparent ground in colours that read on light and on dark pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study import cardinality, pace, ramp, truncation
from study.findings import warm
from study.records import Results
from study.summary import row, rows

_INK = "#8a8f98"
_COLOURS = ("#3b82f6", "#f59e0b", "#10b981", "#ef4444")
_STYLE = {
    "svg.hashsalt": "study",
    "svg.fonttype": "path",
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.grid": True,
    "grid.color": _INK,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(results: Results, folder: Path) -> None:
    """load.svg, repair.svg, pace.svg and cardinality.svg."""
    for name, plot in (("load", _load), ("repair", _repair), ("pace", _pace), ("cardinality", _cardinality)):
        with _axes(folder / f"{name}.svg") as axes:
            plot(results, axes)


@contextmanager
def _axes(path: Path) -> Iterator[Axes]:
    with matplotlib.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.add_subplot()
        yield axes
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, labelcolor=_INK)
        figure.savefig(path, transparent=True, metadata={"Date": None})


def _line(axes: Axes, x: list[Any], y: list[Any], label: str, colour: str) -> None:
    axes.plot(x, y, marker="o", markersize=3, color=colour, label=label)


def _load(results: Results, axes: Axes) -> None:
    """Validity of complete answers by concurrency."""
    for arm, colour in zip(("constrained", "free"), _COLOURS, strict=False):
        found = [r for r in rows(results, ramp.BURST) if r.arm == arm and r.validity is not None]
        _line(axes, [r.level for r in found], [r.validity for r in found], f"{arm}: valid", colour)
    axes.set(xlabel="concurrent requests", ylabel="share of complete answers", ylim=(-0.02, 1.05))


def _repair(results: Results, axes: Axes) -> None:
    """Share of cut documents whose repair validates and is not the original."""
    facts = results.facts_of(truncation.EXPERIMENT)
    for family, colour in zip(dict.fromkeys(f["family"] for f in facts), _COLOURS, strict=False):
        mine = [f for f in facts if f["family"] == family]
        wrong = [(f.get("valid", 0) - f.get("identical", 0)) / f["documents"] for f in mine]
        _line(axes, [f["cut_percent"] for f in mine], wrong, family, colour)
    axes.set(xlabel="cut at % of the tokens", ylabel="repaired, valid, wrong", ylim=(-0.02, 1.05))


def _pace(results: Results, axes: Axes) -> None:
    """Time per token, free and constrained, by batch."""
    levels = (1, 8, 32)
    for side, (arm, colour) in enumerate(zip(("free", "constrained"), _COLOURS, strict=False)):
        found = [row(pace.EXPERIMENT, arm, n, results.of(pace.EXPERIMENT, arm=arm, level=n)) for n in levels]
        places = [at + (side - 0.5) * 0.36 for at in range(len(levels))]
        axes.bar(places, [r.per_token_p50_ms for r in found], width=0.34, color=colour, label=arm)
    axes.set_xticks(range(len(levels)), [str(n) for n in levels])
    axes.set(xlabel="batch", ylabel="ms per token, median")


def _cardinality(results: Results, axes: Axes) -> None:
    """Time per token by number of schemas, after each schema's first reading."""
    arms = dict.fromkeys(r.arm for r in results.of(cardinality.EXPERIMENT))
    for arm, colour in zip(arms, _COLOURS, strict=False):
        levels = sorted({r.level for r in results.of(cardinality.EXPERIMENT, arm=arm)})
        found = [row(cardinality.EXPERIMENT, arm, level, warm(results, arm, level)) for level in levels]
        _line(axes, levels, [r.per_token_p50_ms for r in found], arm, colour)
    axes.set(xlabel="distinct schemas", ylabel="ms per token, median", ylim=(0, None))
