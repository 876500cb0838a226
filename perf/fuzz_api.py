"""schemathesis against the served OpenAPI document, over the application with a scripted backend.

schemathesis gets an environment of its own, made once: its jsonschema-rs is not ours.
Exit status 1 when an answer is a 500, or has a status, media type or shape that the document does not tell.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from guided_frontend.settings import Settings  # noqa: E402
from guided_testing.scripted_backend import ScriptedBackend, load_model, serving  # noqa: E402

_VERSION = "schemathesis==4.32.5"
_CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def tool(folder: Path) -> Path:
    """The command, installed into `folder` if it is not there."""
    command = folder / "bin/schemathesis"
    if not command.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", _VERSION], check=True)
    return command


def main() -> int:
    """Runs it; returns schemathesis' exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=400, help="for each of the eleven endpoints, at most")
    parser.add_argument("--seed", type=int, default=8)
    cache = Path(os.environ.get("GUIDED_CACHE") or Path.home() / ".cache/triton-guided")
    parser.add_argument("--environment", type=Path, default=cache / "schemathesis")
    asked = parser.parse_args()
    command = tool(asked.environment)
    settings = Settings(served_model_names=("smollm2",), max_model_len=4096, compile_timeout=5.0)
    with tempfile.TemporaryDirectory() as folder:
        model = load_model(Path(folder), settings)
        with serving(settings, ScriptedBackend(), model) as url:
            arguments = [f"--max-examples={asked.examples}", f"--seed={asked.seed}", f"--checks={_CHECKS}"]
            arguments += ["--phases=coverage,fuzzing", "--no-color", "--request-timeout=30"]
            environment = {**os.environ, "SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("fuzz_hooks.py"))}
            return subprocess.run(
                [command, "run", f"{url}/openapi.json", *arguments], env=environment, cwd=folder, check=False
            ).returncode


if __name__ == "__main__":
    sys.exit(main())
