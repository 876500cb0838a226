"""What is installed beside this process. Looked up once: reading package metadata takes a millisecond."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("triton-guided", "xgrammar", "tokenizers", "transformers", "torch", "triton", "fastapi", "tritonclient")


@cache
def installed(package: str) -> str | None:
    """Version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def packages() -> dict[str, str | None]:
    """Versions of everything that an answer may depend on."""
    return {name: installed(name) for name in _PACKAGES}


def fingerprint() -> str:
    """This server, as answers name it."""
    return f"triton-guided-{installed('triton-guided') or 'source'}"


def grammar_backend() -> str:
    """The library that turns grammars into masks; its version where it is installed here, too."""
    found = installed("xgrammar")
    return f"xgrammar {found}" if found else "xgrammar"
