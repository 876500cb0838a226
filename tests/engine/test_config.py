"""Settings: config.pbtxt's parameters, overridden by the environment; what does not fit is an error."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from guided_engine.config import EngineConfig
from guided_grammar.limits import Limits

PBTXT = Path(__file__).parents[2] / "model_repository/guided_llm/config.pbtxt"


def parameters() -> dict[str, str]:
    found = re.findall(r'key: "(\w+)", value: \{ string_value: "([^"]*)" \}', PBTXT.read_text())
    return dict(found)


def test_config_pbtxt_names_every_setting_and_gives_the_defaults() -> None:
    assert set(parameters()) == {f.name for f in fields(EngineConfig)} - {"limits"}
    assert EngineConfig.load(parameters(), {}) == EngineConfig()


def test_the_environment_overrides_a_parameter() -> None:
    config = EngineConfig.load(
        {"max_rows": "4", "model": "a"}, {"GUIDED_MAX_ROWS": "8", "GUIDED_JUMP_FORWARD": "false"}
    )
    assert (config.max_rows, config.model, config.jump_forward) == (8, "a", False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_row": "4"}, "unknown parameter 'max_row'"),
        ({"max_rows": "many"}, "max_rows must be a number"),
        ({"max_rows": "0"}, "max_rows must be at least 1, got 0"),
        ({"jump_forward": "maybe"}, "jump_forward must be true or false"),
        ({"dtype": "int3"}, "dtype must be one of"),
        ({"mask_seconds": "-1"}, "mask_seconds must not be negative"),
        ({"mask_seconds": "nan"}, "mask_seconds must not be negative"),
        ({"limit_regex_bytes": "0"}, "limit_regex_bytes must be at least 1, got 0"),
        ({"limit_regex_bytes": "4k"}, "limit_regex_bytes must be a number"),
        ({"limit_regex": "9"}, "unknown parameter 'limit_regex'"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EngineConfig.load(given, {})


@pytest.mark.parametrize("name", [f.name for f in fields(Limits)])
def test_p8_to_p17_each_limit_is_a_parameter_and_a_variable(name: str) -> None:
    assert EngineConfig.load({f"limit_{name}": "77"}, {}).limits == replace(Limits(), **{name: 77})
    by_variable = EngineConfig.load({f"limit_{name}": "77"}, {f"GUIDED_LIMIT_{name.upper()}": "78"})
    assert by_variable.limits == replace(Limits(), **{name: 78})


@pytest.mark.parametrize(
    ("asked", "kind", "device_id", "device"),
    [
        ("auto", "GPU", "1", "cuda:1"),
        ("auto", "CPU", "0", "cpu"),
        ("auto", "MODEL", "0", "auto"),
        ("cuda:2", "GPU", "1", "cuda:2"),
        ("cpu", "GPU", "1", "cpu"),
    ],
)
def test_an_instance_is_on_the_device_triton_gives_it_unless_one_is_set(
    asked: str, kind: str, device_id: str, device: str
) -> None:
    config = EngineConfig.load({"device": asked, "max_rows": "4"}, {}).for_instance(kind, device_id)
    assert (config.device, config.max_rows) == (device, 4)


def test_tritons_own_parameters_are_left_to_it() -> None:
    assert EngineConfig.load({"EXECUTION_ENV_PATH": "/venv"}, {}) == EngineConfig()
