"""The two images: what a linter and the packaging say about their Dockerfiles."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
from guided_testing.deployment import DOCKER, ROOT

IMAGES = ("server", "frontend")
HADOLINT = Path(sys.executable).with_name("hadolint")


def text(image: str) -> str:
    """The Dockerfile with continued lines joined and comments dropped."""
    text = (DOCKER / f"{image}.Dockerfile").read_text()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join(lines).replace("\\\n", " ")


def instructions(image: str, name: str) -> list[str]:
    return [line.split(None, 1)[1] for line in text(image).splitlines() if line.startswith(f"{name} ")]


def extra(name: str) -> set[str]:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][name]
    return {re.split(r"[<>=\[; ]", requirement)[0] for requirement in listed}


@pytest.mark.parametrize("image", IMAGES)
def test_hadolint_finds_nothing(image: str) -> None:
    command = [HADOLINT, "--no-color", "--config", DOCKER / "hadolint.yaml", DOCKER / f"{image}.Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("image", IMAGES)
def test_the_last_user_is_not_root(image: str) -> None:
    assert instructions(image, "USER")[-1] == "1000:1000"


@pytest.mark.parametrize("image", IMAGES)
def test_what_is_copied_exists_and_is_in_the_build_context(image: str) -> None:
    ignore = (DOCKER / f"{image}.Dockerfile.dockerignore").read_text().split()
    assert ignore[0] == "*"
    allowed = [line[1:] for line in ignore if line.startswith("!")]
    for copy in instructions(image, "COPY"):
        for source in copy.split()[:-1]:
            assert (ROOT / source).exists() or source == "README.md", source
            assert any(source == a or source.startswith(a + "/") for a in allowed), source


def test_the_server_installs_the_engine_extra_without_the_server_wheel() -> None:
    command = next(run for run in instructions("server", "RUN") if "torch" in run and "--ignore-installed" in run)
    resolved = set(re.split(r"/dist/constraints.txt", command)[1].split("&&")[0].split())
    assert resolved == extra("engine") - {"nvidia-pytriton"}
    assert "--no-deps --requirement /dist/nodeps.txt" in command


def test_the_frontend_extra_holds_nothing_that_needs_torch() -> None:
    assert not extra("frontend") & {"torch", "xgrammar", "triton", "transformers", "numba"}


def test_the_repository_in_the_image_holds_no_second_copy_of_the_engine() -> None:
    below = [c.split()[0] for c in instructions("server", "COPY") if c.split()[-1].startswith("/models/")]
    assert below == ["model_repository/guided_llm/config.pbtxt", "model_repository/guided_llm/1/model.py"]


def test_the_servers_default_tag_carries_a_python_that_the_pins_install_on() -> None:
    year, month = re.fullmatch(r"TRITON_TAG=(\d\d)\.(\d\d)-py3", instructions("server", "ARG")[0]).groups()  # type: ignore[union-attr]
    assert (int(year), int(month)) >= (24, 12)
