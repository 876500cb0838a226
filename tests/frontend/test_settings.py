from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from guided_frontend import served, settings
from guided_frontend.errors import NotFound
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_grammar.errors import InvalidConstraint
from guided_grammar.limits import Limits
from guided_testing.scripted_backend import write_model

CASES: list[tuple[list[str], dict[str, str], dict[str, Any]]] = [
    ([], {}, {}),
    (["--port", "1"], {"GUIDED_PORT": "2"}, {"port": 1}),
    ([], {"GUIDED_PORT": "2"}, {"port": 2}),
    ([], {"GUIDED_PORT": ""}, {"port": 9000}),
    (["--served-model-names", "a, b,"], {}, {"served_model_names": ("a", "b")}),
    ([], {"GUIDED_LOG_COMPLETIONS": "true"}, {"log_completions": True}),
    (["--log-completions", "no"], {"GUIDED_LOG_COMPLETIONS": "1"}, {"log_completions": False}),
    (["--token-timeout", "1.5"], {}, {"token_timeout": 1.5}),
    (["--limit-regex-bytes", "9"], {"GUIDED_LIMIT_STEPS": "7"}, {"limits": Limits(regex_bytes=9, steps=7)}),
]


@pytest.mark.parametrize(("flags", "environ", "expected"), CASES)
def test_flags_win_over_variables_which_win_over_defaults(
    flags: list[str], environ: dict[str, str], expected: dict[str, Any]
) -> None:
    assert settings.load(flags, environ) == replace(Settings(), **expected)


def test_every_setting_has_a_flag_and_a_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings.load(["--help"], {})
    text = capsys.readouterr().out
    names = [f.name for f in fields(Settings) if f.name != "limits"] + [f"limit_{f.name}" for f in fields(Limits)]
    for name in names:
        assert f"--{name.replace('_', '-')}" in text and f"GUIDED_{name.upper()}" in text


@pytest.mark.parametrize("flags", [["--nope"], ["--port", "x"], ["--log-completions", "maybe"]])
def test_a_flag_that_makes_no_sense_ends_the_process(flags: list[str]) -> None:
    with pytest.raises(SystemExit):
        settings.load(flags, {})


def test_a_file_lists_the_models_behind_one_frontend(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    path.write_text('[{"triton_model": "a", "served_model_names": ["x", "y"]}, {"triton_model": "b", "model": "/b"}]')
    one, two = settings.per_model(Settings(models=str(path), model="/a", port=7))
    assert (one.triton_model, one.served_model_names, one.model, one.port) == ("a", ("x", "y"), "/a", 7)
    assert (two.triton_model, two.served_model_names, two.model) == ("b", (), "/b")
    assert settings.per_model(Settings()) == (Settings(),)


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", "[1]", '[{"port": 1}]', '[{"model": 3}]', '[{"no_tools": "a"}]', '[{}, {}]',
     '[{"served_model_names": ["b"]}, {"triton_model": "b"}]'],
)  # fmt: skip
def test_a_file_of_models_that_makes_no_sense_stops_the_start(tmp_path: Path, content: str) -> None:
    path = tmp_path / "models.json"
    path.write_text(content)
    with pytest.raises(ValueError):
        settings.per_model(Settings(models=str(path)))


CHATML = "{{ '<|im_start|>' }}"
TEMPLATES = [
    ("chatml without tools gets ours", CHATML, "hermes", True),
    ("hermes", CHATML + "{{ tools }}<tool_call>", "hermes", False),
    ("xml calls", CHATML + "{{ tools }}<tool_call><function=f><parameter=p>", "qwen_xml", False),
    ("newline after a key", "<tool_call>f\n<arg_key>k</arg_key>\n<arg_value>", "glm45", False),
    ("no newline after a key", "<tool_call>f<arg_key>k</arg_key><arg_value>", "glm47", False),
    ("list of calls", "[INST][TOOL_CALLS]", "mistral_v3", False),
    ("arguments marked", "[INST][TOOL_CALLS][ARGS]", "mistral_v11", False),
    ("fenced json", "<｜tool▁calls▁begin｜>```json", "deepseek_v3", False),
    ("bare json", "<｜tool▁calls▁begin｜>", "deepseek_v3_1", False),
    ("channels", "<|start|>assistant<|channel|>final<|message|>", "gpt_oss", False),
    ("thinking chatml keeps its own", CHATML + "{{ enable_thinking }}", "content_only", False),
    ("another family", "[INST]", "content_only", False),
]


@pytest.mark.parametrize(("template", "row", "is_ours"), [t[1:] for t in TEMPLATES], ids=[t[0] for t in TEMPLATES])
def test_auto_proposes_a_format_from_the_template(tmp_path: Path, template: str, row: str, is_ours: bool) -> None:
    folder = write_model(tmp_path, template)
    model = served.load(Settings(model=str(folder)), {"tool_format": "auto"})
    assert model.format.name == row
    rendered = model.template.render(messages=[], tools=None, add_generation_prompt=True)
    assert rendered.startswith("<|im_start|>system\n") == is_ours


def test_settings_win_over_the_servers_parameters(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    parameters = {"model": "/nowhere", "tool_format": "hermes", "max_model_len": "77"}
    model = served.load(Settings(model=str(folder), tool_format="content_only"), parameters)
    assert (model.format.name, model.context, model.shows_tools) == ("content_only", 77, False)
    assert served.load(Settings(model=str(folder)), parameters).format.name == "hermes"


def test_f23_a_model_listed_as_too_small_is_shown_no_tools(tmp_path: Path) -> None:
    few = Settings(model=str(write_model(tmp_path)), served_model_names=("tiny", "t"), no_tools=("t",))
    model = served.load(few, {})
    assert model.format.has_calls and not model.shows_tools


def test_the_template_comes_from_the_setting_then_its_file_then_the_tokenizers_config(tmp_path: Path) -> None:
    folder = write_model(tmp_path, "file")
    given = tmp_path / "given.jinja"
    given.write_text("given")
    config = json.loads((folder / "tokenizer_config.json").read_text()) | {"chat_template": "config"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))

    def rendered(chosen: str) -> str:
        model = served.load(Settings(model=str(folder), chat_template=chosen), {})
        return model.template.render(messages=[], tools=None)

    assert (rendered(str(given)), rendered("")) == ("given", "file")
    assert rendered("chatml_tools").startswith("<|im_start|>system")
    (folder / "chat_template.jinja").unlink()
    assert rendered("") == "config"


@pytest.mark.parametrize(
    ("chosen", "parameter", "context"),
    [(0, "0", None), (0, "", None), (0, "77", 77), (55, "77", 55), (9000, "0", 9000)],
)
def test_the_context_is_the_configured_one_and_else_left_to_the_engine(
    tmp_path: Path, chosen: int, parameter: str, context: int | None
) -> None:
    folder = write_model(tmp_path)
    (folder / "config.json").write_text('{"max_position_embeddings": 8192}')
    assert (
        served.load(Settings(model=str(folder), max_model_len=chosen), {"max_model_len": parameter}).context == context
    )


@pytest.mark.parametrize(("names", "taken"), [(("default",), "default"), (("default", "tool_use"), "tool_use")])
def test_of_several_named_templates_the_one_with_tools_is_taken(
    tmp_path: Path, names: tuple[str, ...], taken: str
) -> None:
    folder = write_model(tmp_path)
    (folder / "chat_template.jinja").unlink()
    config = {"chat_template": [{"name": name, "template": name} for name in names]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    assert served.load(Settings(model=str(folder)), {}).template.render(messages=[]) == taken


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ({"model": "/nowhere"}, ValueError),
        ({"tool_format": "nope"}, InvalidConstraint),
        ({"chat_template": "/nowhere.jinja"}, OSError),
    ],
)
def test_a_model_that_cannot_be_read_stops_the_start(
    tmp_path: Path, chosen: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        served.load(Settings(**{"model": str(write_model(tmp_path)), **chosen}), {})


def test_a_model_without_any_template_stops_the_start(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ValueError, match="chat template"):
        served.load(Settings(model=str(folder)), {})


def test_models_are_found_by_name_alias_or_as_the_first(model: ServedModel) -> None:
    other = replace(model, names=("other",))
    assert served.find((model, other), None) is model
    assert served.find((model, other), "default") is model and served.find((model, other), "other") is other
    with pytest.raises(NotFound, match="smollm2, default, other"):
        served.find((model, other), "nope")
