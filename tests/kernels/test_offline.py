"""What ptxas makes of the Triton kernels, for three generations of GPU and without one."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from guided_kernels import _apply_triton, _cut_triton, _ids_triton, _rows_triton, _top_triton
from guided_kernels.gpu import BLOCK
from guided_kernels.rows import MAX_IDS
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

TILE = {"HAS_TAIL": False, "BLOCK": BLOCK}
TILES = 128
SILENT, RAW, CONSTRAINED = 0, 1, 2


@dataclass(frozen=True)
class Case:
    """A kernel as it is launched, and what it may take: registers, shared bytes, 128-bit logit accesses it needs."""

    kernel: Any
    constants: dict[str, Any]
    registers: int
    shared: int
    wide: str = ""
    warps: int = 4


CASES = {
    "tile_stats": Case(_rows_triton.tile_stats, {"LAW": SILENT, **TILE}, 48, 64, "ld"),
    "tile_stats raw": Case(_rows_triton.tile_stats, {"LAW": RAW, **TILE}, 48, 64, "ld"),
    "draw_rows": Case(_rows_triton.draw_rows, {"LAW": SILENT, "FILTERS": False, "TILES": TILES, **TILE}, 64, 512, "ld"),
    "draw_rows all": Case(_rows_triton.draw_rows, {"LAW": RAW, "FILTERS": True, "TILES": TILES, **TILE}, 64, 512, "ld"),
    "cut_rows": Case(_cut_triton.cut_rows, {"TILES": TILES, **TILE}, 128, 256, "ld", 8),
    "draw_ids": Case(_ids_triton.draw_ids, {"LAW": SILENT, "FILTERS": False, "K": MAX_IDS, "TILES": TILES}, 64, 64),
    "draw_ids all": Case(_ids_triton.draw_ids, {"LAW": CONSTRAINED, "FILTERS": True, "K": MAX_IDS, "TILES": TILES}, 128, 64),
    "top_rows": Case(_top_triton.top_rows, {"LAW": RAW, "TILES": TILES, **TILE}, 96, 64, "ld"),
    "apply": Case(_apply_triton.apply_bits, TILE, 40, 0, "st"),
}  # fmt: skip

POINTERS = {"fp32": ("temperature", "top_p", "min_p", "max", "sum", "law_max", "law_sum", "cut_value", "logprob", "top_logprob"),
            "i64": ("seed", "step", "id", "top_id"), "i8": ("status",)}  # fmt: skip
TYPE_OF = {f"{name}_ptr": f"*{kind}" for kind, names in POINTERS.items() for name in names}


def compiled(case: Case, dtype: str, arch: int) -> Any:
    names = case.kernel.arg_names
    of_logits = dict.fromkeys(("logits_ptr", "edited_ptr", "law_ptr"), f"*{dtype}")
    signature = {
        name: "constexpr" if name in case.constants else {**TYPE_OF, **of_logits}.get(name, "*i32" if name.endswith("_ptr") else "i32")
        for name in names
    }  # fmt: skip
    # What a launch finds out about aligned tensors and padded vocabularies; without it nothing is 128 bits wide.
    aligned = [name for name in names if name.endswith(("_ptr", "_stride")) or name == "vocab"]
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in aligned}
    source = ASTSource(fn=case.kernel, signature=signature, constexprs=case.constants, attrs=attributes)
    return compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": case.warps})


def assembled(kernel: Any, arch: int, folder: Path) -> str:
    """ptxas -v on the kernel's PTX."""
    tool = knobs.nvidia.ptxas if arch < 90 else knobs.nvidia.ptxas_blackwell
    ptx = folder / "kernel.ptx"
    ptx.write_text(kernel.asm["ptx"])
    command = [
        tool.path,
        "-v",
        f"--gpu-name=sm_{arch}{'a' if arch >= 90 else ''}",
        str(ptx),
        "-o",
        str(folder / "cubin"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.fixture(autouse=True)
def todays_default_of_float_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Left to itself, Triton 3.9 warns that the next version changes it."""
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


@pytest.mark.parametrize(("dtype", "arch"), [("fp32", 80), ("fp32", 90), ("fp32", 100), ("bf16", 90)])
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_spills_nothing_and_accesses_logits_128_bits_at_a_time(
    name: str, dtype: str, arch: int, tmp_path: Path
) -> None:
    case = CASES[name]
    kernel = compiled(case, dtype, arch)
    report = assembled(kernel, arch, tmp_path)
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
    registers = re.findall(r"Used (\d+) registers", report)
    assert spills and {number for pair in spills for number in pair} == {"0"}
    assert [int(number) <= case.registers for number in registers] == [True], registers
    assert kernel.metadata.shared <= case.shared
    if case.wide:
        assert re.search(rf"\b{case.wide}\.global[.a-zA-Z0-9_:]*\.v4\.b32", kernel.asm["ptx"])
