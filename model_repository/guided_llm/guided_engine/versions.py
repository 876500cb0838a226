"""What runs, for the server's log: an installed copy shadows a mounted checkout, and then only this line tells."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("torch", "transformers", "xgrammar", "triton", "numpy", "tokenizers")


def versions() -> dict[str, str]:
    """Installed versions of what an answer depends on; "absent" where a package is not installed."""
    return {name: _version(name) for name in _PACKAGES}


def describe() -> str:
    listed = ", ".join(f"{name} {number}" for name, number in versions().items())
    return f"guided_engine from {Path(__file__).parent}; Python {sys.version.split()[0]}, {listed}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
