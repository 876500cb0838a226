"""Liveness of a tritonserver that runs guided_llm: exits 0 when the engine takes steps or answers with a token.

Triton's own readiness stays true after the model's process has died, and requests then hang. A busy engine is not
asked, since the request would wait behind the others: its steps tell. An answer of "queue is full" is one, too.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request

_BUSY = (429, 504)
_MARK = "guided_error:"
_STEPS = "guided_steps_total"
_LOOK_SECONDS = 1.0
_METRICS_SECONDS = 5.0


def steps(url: str) -> float | None:
    """Steps that the engine has taken, from Prometheus' text format; None when there are no metrics."""
    try:
        with urllib.request.urlopen(url, timeout=_METRICS_SECONDS) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return None
    found = [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(_STEPS)]
    return sum(found) if found else None


def fault(status: int, body: str) -> str:
    """Why the engine counts as dead, "" for alive. `body`: Triton's JSON, whose `error` may hold the engine's own."""
    if status == 200:
        return ""
    try:
        told = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"
    _, mark, ours = told.partition(_MARK)
    if mark and json.loads(ours)["status"] in _BUSY:
        return ""
    return f"HTTP {status}: {told}"


def ask(url: str, timeout: float) -> str:
    """As `fault`; silence past `timeout` seconds is one too."""
    asked = {"text_input": "a", "sampling_parameters": json.dumps({"max_tokens": 1})}
    request = urllib.request.Request(url, json.dumps(asked).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return fault(answer.status, answer.read().decode())
    except urllib.error.HTTPError as error:
        return fault(error.code, error.read().decode(errors="replace"))
    except OSError as error:
        return str(error)


def probe(base: str, metrics: str, timeout: float) -> str:
    """Why the engine counts as dead, "" for alive."""
    before = steps(metrics)
    if before is not None:
        time.sleep(_LOOK_SECONDS)
        if (steps(metrics) or 0) > before:
            return ""
    found = ask(f"{base}/v2/models/guided_llm/generate", timeout)
    # one step may take longer than the look, and the queue longer than the request waits
    is_moving = before is not None and (steps(metrics) or 0) > before
    return "" if is_moving else found


def main() -> None:
    environ = os.environ.get
    base, metrics = environ("TRITON_URL", "http://127.0.0.1:8000"), environ("TRITON_METRICS_URL", "")
    found = probe(base, metrics or "http://127.0.0.1:8002/metrics", float(environ("TRITON_PROBE_SECONDS", "55")))
    # an empty text would exit with 1 as well
    sys.exit(found or 0)


if __name__ == "__main__":
    main()
