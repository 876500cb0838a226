"""Kept verdicts -> perf/conformance.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from conformance_rows import CORPORA, Kept, Retained
from guided_grammar.conformance.scoreboard import Score, faults, refusals, score, scores, slowest, table

_COMPILE_MS, _FILL_US = 1000.0, 10_000.0
_ENGINES = ("ours", "xgrammar", "llguidance")
_COLUMNS = (
    "engine", "vocabulary", "cases", "refused", "unsatisfiable", "failed", "valid rejected", "invalid accepted",
    "compile ms p50 / p99 / max", "mask µs p50 / p99 / max",
)  # fmt: skip
_INTRODUCTION = """\
An instance counts where its constraint was enforced. Valid instances are written in our canonical spelling
(keys in declared order, `", "` and `": "`, no exponents); the other engines get them with blanks allowed and
keys as they stand, byte by byte. *invalid accepted* is what a constrained decoder must never have.
*unsatisfiable* are constraints that no text satisfies and of which the corpus knows no valid instance: their
refusal is right, and they are not among the refused. *failed* took more than 30 s of processor time, or too
much memory. `n of m` cases are those that `--every` or `--budget` of the runs left: each eighth of the corpus, or
its beginning.

Ours is judged byte by byte and, where a vocabulary is named, token by token as well; the times are those of
that vocabulary. Compile time is our part and the masks together, in CPU time; mask times are CPU time of one
core, those of a position that is seen for the first time included. Limits are the defaults, except that the
size of a schema is not limited here. Targets: compile p50 30 ms and p99 1 s, masks p50 30 µs, p99 1 ms and at
most 10 ms; what is over 1 s or 10 ms is listed."""


def report(rows: Retained) -> tuple[str, int]:
    """Markdown, and how many invalid instances we accepted."""
    parts, sections, accepted = [_heading(rows)], [], 0
    for corpus, (title, _) in CORPORA.items():
        kept = sorted((rows.read(corpus, arm) for arm in rows.arms(corpus)), key=_rank)
        if not kept:
            continue
        parts.append(f"## {title}\n\n{_summary(kept)}")
        ours = [k for k in kept if k.arm.engine == "ours"]
        accepted += sum(len(v.accepted) for k in ours for v in k.ordered)
        if ours:
            sections.append(_section(title, max(ours, key=lambda k: len(k.verdicts)), ours[-1]))
    return "\n\n".join([*parts, *sections]) + "\n", accepted


def _rank(kept: Kept) -> tuple[int, int, str]:
    """Ours first, by the size that ends the name of a vocabulary."""
    size = "".join(filter(str.isdigit, kept.arm.vocabulary.rpartition("-")[2]))
    return _ENGINES.index(kept.arm.engine), int(size or 0), kept.arm.vocabulary


def _heading(rows: Retained) -> str:
    stamps = [s for corpus in CORPORA for arm in rows.arms(corpus) for s in rows.read(corpus, arm).stamps]
    days = sorted({stamp["day"] for stamp in stamps})
    told = sorted({json.dumps(stamp["versions"]) for stamp in stamps})
    versions = "; ".join(", ".join(f"{k} {v}" for k, v in json.loads(text).items()) for text in told)
    commits = ", ".join(sorted({stamp["commit"] for stamp in stamps if stamp["engine"] == "ours"}))
    loads = [stamp["load"] for stamp in stamps]
    machine = stamps[-1]["machine"] if stamps else {}
    return (
        f"# Conformance\n\n{' to '.join(dict.fromkeys((days[0], days[-1])))}; {versions}. Our rows are of commit "
        f"{commits}. {machine['cpu']}, {machine['cores']} cores; the load average at the beginning of the runs was "
        f"{min(loads):.1f} to {max(loads):.1f}.\n\n{_INTRODUCTION}"
    )


def _summary(kept: Iterable[Kept]) -> str:
    lines = [_line(_COLUMNS), _line("---" for _ in _COLUMNS)]
    return "\n".join([*lines, *(_line(_cells(k, score("", k.ordered))) for k in kept)])


def _cells(kept: Kept, s: Score) -> tuple[str, ...]:
    is_ours = kept.arm.engine == "ours"
    cases = str(s.cases) if s.cases == kept.total else f"{s.cases} of {kept.total}"
    times = [" / ".join(f"{x:.3g}" for x in spread) if is_ours else "–" for spread in (s.compile_ms, s.fill_us)]
    return (
        kept.arm.engine, kept.arm.vocabulary, cases, str(s.refused), str(s.unsatisfiable), str(s.failed),
        f"{s.rejected} of {s.valid}", f"{s.accepted} of {s.invalid}", *times,
    )  # fmt: skip


def _section(title: str, most: Kept, largest: Kept) -> str:
    """most: with the most verdicts. largest: with the largest vocabulary, whose times count."""
    verdicts = most.ordered
    parts = [f"## {title}: ours by group, {most.arm.vocabulary}", table(scores(verdicts))]
    reasons = refusals(verdicts)
    if reasons:
        parts.append("| refused | reason |\n| --- | --- |\n" + reasons)
    slow = f"Over the bounds of time, {largest.arm.vocabulary}"
    for name, lines in (("Wrong or without a verdict", faults(verdicts)), (slow, _slow(largest))):
        if lines:
            parts.append(f"{name}:\n\n" + "\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts)


def _slow(kept: Kept) -> Sequence[str]:
    return slowest(kept.ordered, compile_ms=_COMPILE_MS, fill_us=_FILL_US, limit=len(kept.verdicts))


def _line(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
