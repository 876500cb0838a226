"""What files of a deployment may refer to, taken from the code: metrics, environment variables, defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import promql_parser
import yaml  # type: ignore[import-untyped]
from guided_engine.config import EngineConfig
from guided_engine.metrics import COUNTERS, GAUGES, HISTOGRAMS
from guided_frontend.metrics import Metrics
from guided_frontend.settings import PREFIX, Settings
from guided_grammar.limits import Limits

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
_PARTS = ("_bucket", "_sum", "_count")
# NVIDIA's own, documented for every release; only the dashboard's GPU row and the docs use them
TRITON_METRICS = {"nv_gpu_utilization", "nv_gpu_memory_used_bytes", "nv_gpu_memory_total_bytes"}
# read by the code outside EngineConfig and Settings
OTHER_VARIABLES = {"GUIDED_CACHE", "GUIDED_HTTP_PORT", "GUIDED_GRPC_PORT", "GUIDED_METRICS_PORT"}


def documents(path: Path) -> list[Any]:
    """Every YAML document of a file that is not empty."""
    return [d for d in yaml.safe_load_all(path.read_text()) if d is not None]


def engine_samples() -> set[str]:
    """Names as they stand on tritonserver's /metrics."""
    return {*GAUGES, *COUNTERS, *(name + part for name in HISTOGRAMS for part in _PARTS)}


def frontend_samples() -> set[str]:
    """Names as they stand on the frontend's /metrics, those without a sample yet included."""
    found: set[str] = set()
    for line in Metrics(lambda: 0).text().decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            found |= {name + part for part in _PARTS} if kind == "histogram" else {name}
    return found


def recorded() -> set[str]:
    """Names that our own recording rules add."""
    groups = documents(DOCKER / "prometheus/rates.yml")[0]["groups"]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


def known_samples() -> set[str]:
    return engine_samples() | frontend_samples() | recorded() | TRITON_METRICS | {"up"}


def selectors(expression: str) -> Iterator[promql_parser.VectorSelector]:
    """Every series selector of a PromQL expression. Raises ValueError when it does not parse."""
    return _selectors(promql_parser.parse(expression))


def _selectors(node: Any) -> Iterator[promql_parser.VectorSelector]:
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    for name in ("expr", "lhs", "rhs", "vector_selector"):
        child = getattr(node, name, None)
        if child is not None:
            yield from _selectors(child)
    for argument in getattr(node, "args", ()):
        yield from _selectors(argument)


def engine_variables() -> dict[str, Any]:
    """Environment variable to default, as tritonserver's process reads it."""
    return {PREFIX + f.name.upper(): f.default for f in fields(EngineConfig) if f.name != "limits"}


def frontend_variables() -> dict[str, Any]:
    """Environment variable to default, as the frontend's process reads it."""
    chosen = Settings()
    own = {PREFIX + f.name.upper(): getattr(chosen, f.name) for f in fields(Settings) if f.name != "limits"}
    return own | {f"{PREFIX}LIMIT_{f.name.upper()}": f.default for f in fields(Limits)}


def known_variables() -> set[str]:
    return {*engine_variables(), *frontend_variables(), *OTHER_VARIABLES}
