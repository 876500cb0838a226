"""Each finding of the study: theirs, ours, whether it is the same, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from study import agents, cardinality, pace, pressure, probe, ramp, truncation
from study.ladder import Outcome
from study.probe import Cell
from study.records import Record, Results
from study.summary import Row, peak, row, rows, total


@dataclass(frozen=True)
class Finding:
    """`ids`: the acceptance items. `ours` is computed from the run; "not measured" where its experiment did not run."""

    ids: str
    theirs: str
    ours: str
    verdict: str
    why: str


def findings(results: Results) -> list[Finding]:
    makers: tuple[Callable[[Results], Finding], ...] = (
        _validity,
        _truncation,
        _transport,
        _semantic,
        _keywords,
        _pace,
        _cache,
        _preemption,
        _agents,
        _repair,
        _ladder,
    )
    return [maker(results) for maker in makers]


_THEIR_LOSS = 4 / 7000
_LOADED = (ramp.BURST, ramp.SUSTAINED, cardinality.EXPERIMENT, pressure.EXPERIMENT)


def _constrained(results: Results, *experiments: str) -> list[Row]:
    found = [r for name in experiments for r in rows(results, name)]
    return [r for r in found if r.arm not in ("free", "prompt_only") and not r.arm.endswith("_warm_up")]


def _span(values: list[float | None]) -> str:
    known = [v for v in values if v is not None]
    if not known:
        return "not measured"
    low, high = min(known), max(known)
    return f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f}"


def _same(holds: bool, measured: bool = True) -> str:
    return ("same" if holds else "different") if measured else "not measured"


def _validity(results: Results) -> Finding:
    found = _constrained(results, *_LOADED)
    values = [r.validity for r in found]
    ours = f"{_span(values)} over {sum(r.requests for r in found)} requests, {len(found)} arms and levels"
    holds = all(v in (None, 1.0) for v in values)
    return Finding(
        "D97, D99, D107",
        "1.00 at every level, 1 to 400 streams (0.995 once with varying seeds)",
        ours,
        _same(holds, any(v is not None for v in values)),
        "the mask decides, and no load reaches it",
    )


def _truncation(results: Results) -> Finding:
    values = [r.truncation for r in rows(results, ramp.TIGHT)]
    return Finding(
        "D98, D115, D109",
        "0.665 at each of 1, 10, 50, 100 streams with a budget of 128: independent of load",
        f"{_span(values)} over {len(values)} levels with a budget of {tight_budget(results)}",
        _told_by(values),
        "a budget is counted in tokens; nothing is shortened under load",
    )


def _told_by(values: list[float | None]) -> str:
    if set(values) in ({0.0}, {1.0}):
        return "all or none were cut, which tells nothing"
    return _same(len(set(values)) == 1, bool(values))


def tight_budget(results: Results) -> int:
    """Tokens of the answers that were cut, 0 where none was."""
    cut = (r for r in results.of(ramp.TIGHT) if r.outcome is Outcome.TRUNCATION)
    return max((r.completion_tokens for r in cut), default=0)


def _rare(lost: float, asked: int) -> str:
    """At their lowest rate, none lost of fewer than three over that rate happens in more than 1 of 20 runs."""
    if lost:
        return "same"
    return "different" if asked >= 3 / _THEIR_LOSS else "too few requests to tell"


def _transport(results: Results) -> Finding:
    found = [r for r in rows(results, ramp.SUSTAINED) if not r.arm.endswith("_warm_up")]
    arms = ("constrained", "no_pool")
    lost = {arm: sum(r.transport * r.requests for r in found if r.arm == arm) for arm in arms}
    asked = {arm: sum(r.requests for r in found if r.arm == arm) for arm in arms}
    return Finding(
        "D100, D102, D103",
        "4 to 13 of about 7,000 lost with a connection pool, none without",
        ", ".join(f"{arm}: {lost[arm]:.0f} of {asked[arm]}" for arm in arms) if found else "not measured",
        _rare(sum(lost.values()), asked["constrained"]) if found else "not measured",
        "idle connections outlive a client's pool here, so that no request meets a closing one",
    )


def _semantic(results: Results) -> Finding:
    found = _constrained(results, ramp.BURST)
    return Finding(
        "D107, D140",
        "0.665 to 0.670 of valid answers keep the business rules, at every level",
        f"{_span([r.semantic for r in found])}",
        _same(all(r.semantic is not None and r.semantic < 1 for r in found), bool(found)),
        "a grammar forbids shapes, not wrong values; the level is the model's (135 M parameters here, 7 B there)",
    )


def _keywords(results: Results) -> Finding:
    cells = [f for f in results.facts_of(probe.EXPERIMENT) if f.get("arm") == "ours" and "cell" in f]
    counts = {c: sum(f["cell"] == c for f in cells) for c in Cell}
    ours = ", ".join(f"{count} {cell}" for cell, count in counts.items() if count)
    return Finding(
        "D67, D69, D70 to D76",
        "xgrammar 0.2.3: 9 enforced, 5 rejected, 3 accepted and ignored, 1 no verdict; `multipleOf` answered 500",
        ours or "not measured",
        _same(counts[Cell.IGNORED] > 0, bool(cells)),
        "every keyword is compiled by us with and without `type`, or refused by name",
    )


def _pace(results: Results) -> Finding:
    ratios = {level: ratio for level in (1, 8, 32) if (ratio := pace_ratio(results, level))}
    ours = ", ".join(f"{ratio:.2f} at {level}" for level, ratio in ratios.items())
    return Finding(
        "D114, D48",
        "constrained over free time per token: about 1.0 idle, 1.33 on a wide batch",
        ours or "not measured",
        _same(any(r > 1.1 for r in ratios.values()), bool(ratios)),
        "masks are filled while the model runs, and forced text needs no step of its own",
    )


def pace_ratio(results: Results, level: int) -> float:
    """Constrained over free, medians of the time per token; 0 where an arm is missing."""
    constrained, free = (
        row(pace.EXPERIMENT, arm, level, results.of(pace.EXPERIMENT, arm=arm, level=level)).per_token_p50_ms
        for arm in ("constrained", "free")
    )
    return constrained / free if free else 0.0


def cache_ratios(results: Results) -> list[float]:
    """Time per token at 1 MiB over that of either run at the default, at the most schemas; [] without all three."""
    level = max((r.level for r in results.of(cardinality.EXPERIMENT)), default=0)
    small, *defaults = (
        row(cardinality.EXPERIMENT, arm, level, warm(results, arm, level)).per_token_p50_ms
        for arm in (cardinality.SMALL, cardinality.DEFAULT, cardinality.AGAIN)
    )
    return [small / default for default in defaults] if small and all(defaults) else []


def warm(results: Results, arm: str, level: int) -> list[Record]:
    """Requests of the cardinality arm after the first reading of each schema (D133)."""
    return [r for r in results.of(cardinality.EXPERIMENT, arm=arm, level=level) if r.index >= level]


def _cache(results: Results) -> Finding:
    ratios = cache_ratios(results)
    facts = results.facts_of(cardinality.EXPERIMENT)
    evicted = total(facts, "guided_grammar_cache_evictions_total", lambda f: f["arm"] == cardinality.SMALL)
    ours = "per token {:.2f} and {:.2f} times the default before and after it, {:.0f} evictions"
    return Finding(
        "D129 to D131",
        "a cache of 1 MiB: 2.5 times the time to first token, 2 times the time per token",
        ours.format(*ratios, evicted) if ratios else "not measured",
        _same(min(ratios, default=0) > 1.1, bool(ratios)),
        "a running grammar is pinned; an evicted one is compiled again before its row starts, never within it",
    )


def _preemption(results: Results) -> Finding:
    found = rows(results, pressure.EXPERIMENT)
    count = peak(results.facts_of(pressure.EXPERIMENT), "guided_preempted_choices_total", lambda _: True)
    ours = f"{count:.0f} preemptions over {found[0].requests} requests, validity {found[0].validity}" if found else ""
    return Finding(
        "D105, D106",
        "never fired (cache at 1.5 %), so untested",
        ours or "not measured",
        "different" if count else "not measured",
        "forced by a small key-value cache: a matcher is kept while its row waits",
    )


def _agents(results: Results) -> Finding:
    parts = []
    for name in (agents.TWO, agents.FIVE):
        records = results.of(name)
        last = f"turn {len(agents.SCRIPTS[name])}"
        whole = sum(r.case == last and r.outcome is Outcome.OK for r in records)
        parts.append((name, whole, len({r.index for r in records})))
    ours = ", ".join(f"{name}: {whole} of {begun} whole" for name, whole, begun in parts if begun)
    return Finding(
        "D134 to D136",
        "600 conversations of five steps without a content failure",
        ours or "not measured",
        _same(all(whole == begun for _, whole, begun in parts), bool(ours)),
        "scripted: the schema pins the values carried from turn to turn, which the model is too small for",
    )


def _repair(results: Results) -> Finding:
    facts = [f for f in results.facts_of(truncation.EXPERIMENT) if f["family"] == "flat" and f["cut_percent"] >= 60]
    documents, valid, same = (sum(f.get(k, 0) for f in facts) for k in ("documents", "valid", "identical"))
    parses = sum(f["cut_parses"] for f in results.facts_of(truncation.EXPERIMENT))
    ours = f"{valid} of {documents} repaired ones validate, {same} equal the original; {parses} cut ones parse"
    return Finding(
        "D5, D59 to D62",
        "of flat documents cut at 60 to 90 %, all repaired ones parse and validate, none is the original",
        ours if documents else "not measured",
        _same(valid > documents / 2 and same < documents / 10, bool(documents)),
        "why nothing that was cut is repaired here",
    )


def _ladder(results: Results) -> Finding:
    caught = [
        r
        for name in _LOADED
        for r in results.of(name)
        if r.arm not in ("free", "prompt_only") and r.outcome in (Outcome.PARSE, Outcome.VIOLATION)
    ]
    asked = sum(r.requests for r in _constrained(results, *_LOADED))
    return Finding(
        "D158",
        "28,246 constrained requests: parse and schema rungs caught nothing",
        f"{asked} constrained requests: they caught {len(caught)}" if asked else "not measured",
        _same(not caught, bool(asked)),
        "termination and your own rules are the rungs that find something",
    )
