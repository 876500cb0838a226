from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guided_testing.running_stack import RunningStack
from openai import OpenAI


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack.start(tmp_path_factory.mktemp("stack") / "serve.log")
    try:
        assert running.leftovers(), "the running stack is not recognised"
        yield running
    finally:
        took = running.stop()
    assert took < 10, f"Ctrl-C took {took:.1f} s"
    assert running.leftovers() == []


@pytest.fixture(scope="session")
def client(stack: RunningStack) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{stack.url}/v1", api_key="flm", max_retries=0, timeout=120) as openai:
        yield openai
