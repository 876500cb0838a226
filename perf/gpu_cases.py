"""What is timed on a GPU: our kernels and their peers, over real masks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_correct import FILTERS, params
from gpu_report import ARGMAX, SAMPLED, TORCH, XGRAMMAR, XGRAMMAR_CUDA, Cell, Figure, Report
from guided_kernels import gpu
from guided_kernels.plan import Plan
from guided_kernels.rows import BITS, IDS, MAX_IDS, Rows
from numpy.typing import NDArray

LAUNCH_US = 2.0
COLD_BYTES = 180 * 2**20
REPLAYS = 15
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
DENSE, LISTED = Plan(listed=False, filters=False), Plan(dense=False, filters=False)


def cells(dry: bool) -> Iterator[Cell]:
    """The most important first, as the budget may end anywhere."""
    if dry:
        yield from (Cell(2048, "tekken", "fp32", 2, masks, True) for masks in ("dense", "sparse"))
        return
    for vocab, source in ((151_936, "qwen"), (131_072, "tekken"), (262_144, "tekken")):
        for num_rows in (64, 256, 8, 1):
            for dtype in ("bf16", "fp32"):
                for masks in ("dense", "sparse"):
                    yield Cell(vocab, source, dtype, num_rows, masks, warm=False)
                    if num_rows <= 64:
                        yield Cell(vocab, source, dtype, num_rows, masks, warm=True)


def _imported(module: str, name: str) -> Callable[..., Any] | None:
    try:
        return getattr(importlib.import_module(module), name, None)
    except Exception:  # a peer that can't be imported here, for whatever reason, is left out
        return None


class Bench:
    """Times cells. One instance, as bandwidth is measured once."""

    def __init__(self, report: Report, device: str) -> None:
        self._report, self._device, self._dry = report, device, device == "cpu"
        stored = np.load(Path(__file__).parent / "masks.npz")
        self._masks = {name: stored[name] for name in stored.files}
        self._bandwidth = 4.3e12 if self._dry else self._copy_bandwidth()
        self._peers: dict[str, Callable[..., Any] | None] = {} if self._dry else _peers()
        report.note(copy_bandwidth=self._bandwidth, peers=[name for name, peer in self._peers.items() if peer])

    def run(self, cell: Cell) -> None:
        words = self._words(cell)
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, : cell.vocab]
        table = torch.from_numpy(words).to(self._device)
        buffers = self._buffers(cell)
        rows = Rows.unconstrained(cell.num_rows, self._device)
        rows = replace(
            rows, kind=rows.kind + BITS, index=torch.arange(cell.num_rows, device=self._device).int(), bits=table
        )
        law = params(cell.num_rows, FILTERS["none"], self._device, greedy_every=cell.num_rows + 1)
        greedy = replace(law, temperature=law.temperature * 0)
        number = torch.arange(cell.num_rows, dtype=torch.int32, device=self._device)
        fused, in_place, listed = self._floors(cell, bits)

        def time(name: str, floor: float, step: Callable[[torch.Tensor], Any], graph: bool = True) -> None:
            us = self._graph(step, buffers) if graph else self._eager(lambda: step(buffers[0]))
            self._report.figure(Figure(cell, name, us, floor))

        time("rows", fused, lambda x: gpu.sample(x, rows, law, 0, None, "none", DENSE))
        time("rows greedy", fused, lambda x: gpu.sample(x, rows, greedy, 0, None, "none", DENSE))
        time("rows raw logprobs", fused, lambda x: gpu.sample(x, rows, law, 0, None, "raw", DENSE))
        for name in ("top-k", "top-p", "all"):
            filtered = params(cell.num_rows, FILTERS[name], self._device, greedy_every=cell.num_rows + 1)
            plan = replace(DENSE, filters=True)
            time(f"rows {name}", fused, lambda x, f=filtered, p=plan: gpu.sample(x, rows, f, 0, None, "none", p))  # type: ignore[misc]
        if cell.masks == "sparse":
            lists = self._lists(rows, bits, 64)
            time("ids", listed, lambda x: gpu.sample(x, lists, law, 0, None, "none", LISTED))
            full = self._lists(rows, bits, MAX_IDS)
            strict = params(cell.num_rows, FILTERS["all"], self._device, greedy_every=cell.num_rows + 1)
            plan = replace(LISTED, filters=True)
            time("ids 1024 filtered", listed, lambda x: gpu.sample(x, full, strict, 0, None, "none", plan))
        # Last of ours, as it leaves -inf behind.
        time("apply", in_place, lambda x: gpu.apply(x, table, number))
        self._run_peers(cell, time, table, torch.from_numpy(bits).to(self._device).bool(), fused, in_place)

    def _run_peers(
        self,
        cell: Cell,
        time: Callable[..., None],
        table: torch.Tensor,
        allowed: torch.Tensor,
        fused: float,
        place: float,
    ) -> None:
        def masked(x: torch.Tensor) -> torch.Tensor:
            return x.float().masked_fill(~allowed, -torch.inf)

        time(TORCH, fused, lambda x: torch.multinomial(torch.softmax(masked(x), -1), 1), graph=False)
        for name in (XGRAMMAR, XGRAMMAR_CUDA):
            if apply := self._peers.get(name):
                time(name, place, lambda x, f=apply: f(x, table))
        if apply := self._peers.get(XGRAMMAR):
            time(ARGMAX, fused, lambda x: (apply(x, table), x.argmax(-1)))
            time(SAMPLED, fused, lambda x: (apply(x, table), _race(x)))
        if (sample := self._peers.get("flashinfer unmasked")) and cell.dtype == "fp32":
            time("flashinfer unmasked", fused, lambda x: sample(x))

    def _words(self, cell: Cell) -> NDArray[np.int32]:
        """A row of masks for each row, drawn as often as they came."""
        words, count = self._masks[cell.source], self._masks[f"{cell.source}_count"].astype(float)
        share = np.unpackbits(words.view(np.uint8), axis=1).mean(1)
        count = np.where((share > 0.5) == (cell.masks == "dense"), count, 0.0)
        picked = np.random.default_rng(0).choice(len(words), cell.num_rows, p=count / count.sum())
        repeats = -(-cell.vocab // (words.shape[1] * 32))
        return np.ascontiguousarray(np.tile(words[picked], repeats)[:, : cell.vocab // 32])

    def _lists(self, rows: Rows, bits: NDArray[np.uint8], most: int) -> Rows:
        """The first `most` allowed ids of each row; MAX_IDS: full lists, of the ids from 0."""
        num_rows = len(bits)
        ids, num_ids = np.zeros((num_rows, MAX_IDS), np.int32), np.zeros(num_rows, np.int32)
        for row in range(num_rows):
            found = np.flatnonzero(bits[row])[:most]
            if most == MAX_IDS:
                found = np.arange(min(MAX_IDS, bits.shape[1]))
            ids[row, : len(found)], num_ids[row] = found, len(found)
        there = torch.from_numpy(ids).to(self._device), torch.from_numpy(num_ids).to(self._device)
        return replace(rows, kind=rows.kind * 0 + IDS, ids=there[0], num_ids=there[1])

    def _floors(self, cell: Cell, bits: NDArray[np.uint8]) -> tuple[float, float, float]:
        """us to read the words that allow something, to write the barred sectors, to gather the listed ones."""
        per_sector = 32 // cell.element
        words, sectors = bits.reshape(len(bits), -1, 32), bits.reshape(len(bits), -1, per_sector)
        mask = bits.size / 8
        fused = mask + float(words.any(2).sum()) * 32 * cell.element
        in_place = mask + float((sectors == 0).any(2).sum()) * 32
        listed = float(bits.sum()) * 4 + float(sectors.any(2).sum()) * 32
        return tuple(max(LAUNCH_US, size / self._bandwidth * 1e6) for size in (fused, in_place, listed))  # type: ignore[return-value]

    def _buffers(self, cell: Cell) -> list[torch.Tensor]:
        size = cell.num_rows * cell.vocab * cell.element
        sets = 1 if cell.warm else -(-COLD_BYTES // size) + 1
        generator = torch.Generator(self._device).manual_seed(0)
        shape = (cell.num_rows, cell.vocab)
        one = (3 * torch.randn(shape, generator=generator, device=self._device)).to(DTYPES[cell.dtype])
        return [one.clone() for _ in range(sets)]

    def _copy_bandwidth(self) -> float:
        source = torch.empty(1 << 28, device=self._device)
        target = torch.empty_like(source)
        return 2 * source.numel() * 4 / (self._eager(lambda: target.copy_(source)) * 1e-6)

    def _graph(self, step: Callable[[torch.Tensor], Any], buffers: list[torch.Tensor]) -> float:
        """us a call: median of replays of a graph that walks over the buffers."""
        if self._dry:
            step(buffers[0])
            return 0.0
        calls = max(len(buffers), 12)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for buffer in buffers[:3]:
                step(buffer)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for call in range(calls):
                step(buffers[call % len(buffers)])
        return self._eager(graph.replay) / calls

    def _eager(self, step: Callable[[], Any]) -> float:
        """us: median over events."""
        if self._dry:
            step()
            return 0.0
        for _ in range(3):
            step()
        times = []
        for _ in range(REPLAYS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record()
            step()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3)
        return float(np.median(times))


def _peers() -> dict[str, Callable[..., Any] | None]:
    where = "xgrammar.kernels.apply_token_bitmask_inplace"
    return {
        XGRAMMAR: _imported(f"{where}_triton", "apply_token_bitmask_inplace_triton"),
        XGRAMMAR_CUDA: _imported(f"{where}_cuda", "apply_token_bitmask_inplace_cuda"),
        "flashinfer unmasked": _imported("flashinfer.sampling", "sampling_from_logits"),
    }


def _race(x: torch.Tensor) -> torch.Tensor:
    """A multinomial draw that a CUDA graph can hold, as torch's own synchronises."""
    probability = torch.softmax(x.float() / 0.8, -1)
    return (probability / torch.empty_like(probability).exponential_()).argmax(-1)
