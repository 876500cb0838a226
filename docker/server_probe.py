"""Liveness of a tritonserver that runs guided_llm: asks it for one token, exits 0 when the engine answered.

Triton's own readiness stays true after the model's process has died, and requests then hang; only a request tells.
An engine that answers "queue is full" or "waited too long" is alive.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request

_BUSY = (429, 504)
_MARK = "guided_error:"


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


def main() -> None:
    base = os.environ.get("TRITON_URL", "http://127.0.0.1:8000")
    found = ask(f"{base}/v2/models/guided_llm/generate", float(os.environ.get("TRITON_PROBE_SECONDS", "65")))
    # an empty text would exit with 1 as well
    sys.exit(found or 0)


if __name__ == "__main__":
    main()
