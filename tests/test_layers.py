"""The arrows of ARCHITECTURE.md: which package may import which."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = {
    "guided_kernels": ROOT / "kernels/guided_kernels",
    "guided_grammar": ROOT / "grammar/guided_grammar",
    "guided_engine": ROOT / "model_repository/guided_llm/guided_engine",
    "guided_frontend": ROOT / "openai_frontend/guided_frontend",
}
ALLOWED = {
    "guided_kernels": {"guided_kernels"},
    "guided_grammar": {"guided_grammar"},
    "guided_engine": {"guided_engine", "guided_grammar", "guided_kernels"},
    "guided_frontend": {"guided_frontend", "guided_grammar", "guided_engine.protocol"},
}
XGRAMMAR_ROOMS = {"session.py", "probe.py", "watch/guard.py", "watch/shadow.py"}
FILES = [(package, path) for package, root in SOURCES.items() for path in sorted(root.rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """Modules that a file imports anywhere, `from a import b` counted as `a.b` too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def within(name: str, packages: set[str]) -> bool:
    return any(name == p or name.startswith(p + ".") for p in packages)


@pytest.mark.parametrize(("package", "path"), FILES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_a_package_imports_only_what_the_arrows_allow(package: str, path: Path) -> None:
    ours = {name for name in imported(path) if name.startswith("guided_")}
    if package == "guided_frontend":
        ours.discard("guided_engine")
    assert {name for name in ours if not within(name, ALLOWED[package])} == set()


@pytest.mark.parametrize("path", [p for package, p in FILES if package == "guided_grammar"], ids=lambda p: p.name)
def test_only_the_mask_rooms_import_xgrammar_or_torch(path: Path) -> None:
    heavy = {name for name in imported(path) if within(name, {"xgrammar", "torch"})}
    room = path.relative_to(SOURCES["guided_grammar"]).as_posix()
    assert bool(heavy) is (room in XGRAMMAR_ROOMS)


@pytest.mark.parametrize(
    "module", ["guided_grammar.spec", "guided_grammar.compiler", "guided_engine.protocol", "guided_frontend.app"]
)
def test_the_frontends_imports_load_neither_torch_nor_xgrammar(module: str) -> None:
    code = f"import sys, {module}; sys.exit(bool({{'torch', 'xgrammar', 'triton'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("package", "path"), FILES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_a_module_stays_under_the_cap_of_300_lines(package: str, path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300
