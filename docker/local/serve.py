"""`make serve`: run the stack until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import urllib.request
from importlib.metadata import version

from stack import MODEL_NAME, Ports, Stack, StackConfig
from triton_wheel import LaunchError

_CURL = """curl -s http://{host}:{port}/v1/chat/completions -H 'Content-Type: application/json' -d '{{
  "messages": [{{"role": "user", "content": "Name a fantasy hero, with class and age."}}],
  "max_tokens": 64,
  "guided_json": {{
    "type": "object",
    "properties": {{
      "name": {{"type": "string", "maxLength": 20}},
      "age": {{"type": "integer", "minimum": 1, "maximum": 120}},
      "class": {{"enum": ["warrior", "mage", "rogue"]}}
    }},
    "required": ["name", "class"],
    "additionalProperties": false
  }}
}}'"""


def parse(arguments: list[str]) -> StackConfig:
    """Flags win over GUIDED_* environment variables, which win over the defaults."""
    env = os.environ.get
    parser = argparse.ArgumentParser(prog="make serve", description=__doc__)
    parser.add_argument("--model", default=env("GUIDED_MODEL", StackConfig.model), help="directory, hub id or built-in")
    parser.add_argument("--host", default=env("GUIDED_HOST", StackConfig.host), help="address of the OpenAI frontend")
    parser.add_argument("--port", type=int, default=int(env("GUIDED_PORT", "9000")), help="OpenAI frontend")
    parser.add_argument("--http-port", type=int, default=int(env("GUIDED_HTTP_PORT", "8000")), help="Triton HTTP")
    parser.add_argument("--grpc-port", type=int, default=int(env("GUIDED_GRPC_PORT", "8001")), help="Triton gRPC")
    parser.add_argument(
        "--metrics-port", type=int, default=int(env("GUIDED_METRICS_PORT", "8002")), help="Triton metrics"
    )
    given = parser.parse_args(arguments)
    ports = Ports(given.port, given.http_port, given.grpc_port, given.metrics_port)
    return StackConfig(ports=ports, host=given.host, model=given.model)


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def server_version(ports: Ports) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{ports.http}/v2", timeout=5) as response:
        return str(json.load(response)["version"])


def banner(config: StackConfig, stack: Stack) -> str:
    ports = config.ports
    host = "127.0.0.1" if config.host == "0.0.0.0" else config.host
    libraries = ", ".join(f"{name} {version(name)}" for name in ("triton-guided", "xgrammar", "torch", "transformers"))
    return "\n".join(
        [
            f"serving {config.model} as {MODEL_NAME}",
            f"  OpenAI API   http://{host}:{ports.frontend}/v1",
            f"  Triton       127.0.0.1: http {ports.http}, grpc {ports.grpc}, metrics {ports.metrics}",
            f"  versions     tritonserver {server_version(ports)}, {libraries}",
            f"  logs         {stack.logs}",
            "",
            _CURL.format(host=host, port=ports.frontend),
            "",
            "Ctrl-C stops everything.",
        ]
    )


def main(arguments: list[str]) -> int:
    config = parse(arguments)
    stack = Stack(config, say)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt_once)
    status = 0
    try:
        stack.start()
        print(banner(config, stack), flush=True)
        while True:
            time.sleep(0.5)
            stack.watch()
    except KeyboardInterrupt:
        say("stopping")
    except LaunchError as error:
        say(f"cannot start: {error}")
        status = 1
    finally:
        stack.stop()
        say("stopped")
    return status


def _interrupt_once(_number: int, _frame: object) -> None:
    # A second Ctrl-C must not cut the orderly stop short: it would leave the server's children behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
