from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from guided_frontend.errors import BadRequest
from guided_frontend.prompt import ChatTemplate, PromptTokenizer
from guided_frontend.served import ServedModel
from guided_testing.scripted_backend import MARKERS, SPECIALS, write_model

CALL: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"é": "<1>"}}}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d"}}]


def encode(model: ServedModel, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> list[int]:
    trusted = {"add_generation_prompt": True}
    return model.tokenizer.encode_chat(model.template, trusted, {"messages": messages, "tools": tools})


def ids(model: ServedModel, text: str) -> list[int]:
    return model.tokenizer.encode_text(text)


def test_the_shipped_template_writes_a_tool_conversation(model: ServedModel) -> None:
    conversation = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]},
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "2"},
        {"role": "assistant", "content": "ok", "tool_calls": [CALL]},
        {"role": "tool", "content": "3"},
    ]
    call = '<tool_call>\n{"name": "f", "arguments": {"é": "<1>"}}\n</tool_call>'
    tools = '<tools>\n{"type": "function", "function": {"name": "f", "description": "d"}}\n</tools>'
    text = model.tokenizer.decode(encode(model, conversation, TOOLS))
    head, _, rest = text.partition("\n</tools>")
    assert head.startswith("<|im_start|>system\nBe brief.\n") and (head + "\n</tools>").endswith(tools)
    assert rest.partition("<|im_end|>\n")[2] == (
        f"<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n{call}\n{call}<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response><|im_end|>\n"
        f"<|im_start|>assistant\nok\n{call}<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\n3\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


def test_d178_rendering_is_the_same_every_time(model: ServedModel) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [CALL]}]
    assert encode(model, messages, TOOLS) == encode(model, messages, TOOLS)


def test_text_without_markup_is_encoded_as_the_model_does(model: ServedModel) -> None:
    text = "<|im_start|>system\nBe.<|im_end|>\n<|im_start|>user\na < b <i>é</i><|im_end|>\n<|im_start|>assistant\n"
    messages = [{"role": "system", "content": "Be."}, {"role": "user", "content": "a < b <i>é</i>"}]
    assert encode(model, messages) == ids(model, text)


SMUGGLED = [
    ("user", [{"role": "user", "content": "{}"}], 3),
    ("system", [{"role": "system", "content": "{}"}], 2),
    ("tool result", [{"role": "user", "content": "x"}, {"role": "tool", "content": "{}"}], 4),
    (
        "argument",
        [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"{}": "{}"}}}]}],
        3,
    ),
]


@pytest.mark.parametrize("token", [*SPECIALS, *MARKERS])
@pytest.mark.parametrize(("messages", "turns"), [s[1:] for s in SMUGGLED], ids=[s[0] for s in SMUGGLED])
def test_markup_in_the_requests_own_text_stays_text(
    model: ServedModel, messages: list[dict[str, Any]], turns: int, token: str
) -> None:
    def fill(value: Any, by: str) -> Any:
        if isinstance(value, str):
            return value.replace("{}", by)
        if isinstance(value, list):
            return [fill(item, by) for item in value]
        return {fill(k, by): fill(v, by) for k, v in value.items()} if isinstance(value, dict) else value

    harmless, smuggled = encode(model, fill(messages, "word")), encode(model, fill(messages, token))
    markup = [ids(model, text)[0] for text in (*SPECIALS, *MARKERS)]
    assert [i for i in smuggled if i in markup] == [i for i in harmless if i in markup]
    assert len(smuggled) > len(harmless) and token in model.tokenizer.decode(smuggled)


def test_markup_split_over_two_texts_stays_text(tmp_path: Path) -> None:
    tokenizer = PromptTokenizer(write_model(tmp_path))
    template = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}<|im_end|>")
    messages = [{"content": "<|im_"}, {"content": "end|>"}]
    assert tokenizer.encode_chat(template, {}, {"messages": messages}) == [
        *tokenizer.encode_plain("<|im_end|>"),
        *tokenizer.encode_text("<|im_end|>"),
    ]


def test_text_of_noncharacters_survives_and_only_all_of_them_at_once_are_refused(model: ServedModel) -> None:
    text = "".join(map(chr, range(0xFDD0, 0xFDEF)))
    assert text in model.tokenizer.decode(encode(model, [{"role": "user", "content": text + "<|im_end|>"}]))
    with pytest.raises(BadRequest, match="noncharacters"):
        encode(model, [{"role": "user", "content": text + "\ufdef"}])


@pytest.mark.parametrize(
    ("source", "words"),
    [("{{ raise_exception('no system here') }}", "no system here"), ("{{ messages.x.y }}", "no attribute")],
)
def test_a_template_that_refuses_is_a_bad_request_in_its_own_words(source: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        ChatTemplate(source).render(messages=[])


def test_the_sandbox_keeps_templates_from_pythons_internals() -> None:
    with pytest.raises(BadRequest, match="unsafe"):
        ChatTemplate("{{ messages.__class__.__mro__ }}").render(messages=[])
