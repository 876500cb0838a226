from __future__ import annotations

from typing import Any

import pytest
from guided_frontend import conversation
from guided_frontend.errors import BadRequest
from guided_frontend.prompt import ChatTemplate
from guided_frontend.schemas import Message, Tool
from guided_frontend.served import ServedModel

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
HISTORY = [
    {"role": "user", "content": "Go"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
]


def messages(*items: dict[str, Any]) -> list[Message]:
    return [Message.model_validate(item) for item in items]


SPELLED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("text", {"role": "user", "content": "a"}, {"role": "user", "content": "a"}),
    ("developer is system", {"role": "developer", "content": "a"}, {"role": "system", "content": "a"}),
    (
        "parts are joined",
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": "a\nb"},
    ),
    ("name", {"role": "user", "name": "n", "content": "a"}, {"role": "user", "name": "n", "content": "a"}),
    ("refusal", {"role": "assistant", "content": None, "refusal": "no"}, {"role": "assistant", "content": "no"}),
    ("null", {"role": "assistant", "content": None}, {"role": "assistant", "content": ""}),
    (
        "reasoning",
        {"role": "assistant", "content": "a", "reasoning": "r"},
        {"role": "assistant", "content": "a", "reasoning_content": "r"},
    ),
    (
        "tool result",
        {"role": "tool", "content": "a", "tool_call_id": "c"},
        {"role": "tool", "content": "a", "tool_call_id": "c"},
    ),
]


@pytest.mark.parametrize(("given", "shown"), [s[1:] for s in SPELLED], ids=[s[0] for s in SPELLED])
def test_a_message_is_spelled_for_templates(given: dict[str, Any], shown: dict[str, Any]) -> None:
    assert conversation.spelled(messages(given)) == [shown]


@pytest.mark.parametrize(
    ("arguments", "shown"), [('{"a": 1}', {"a": 1}), ("", {}), ({"a": 1}, {"a": 1}), ('{"a": 1', '{"a": 1'), ("[1]", [1])]
)  # fmt: skip
def test_arguments_are_objects_where_they_are_some(arguments: Any, shown: Any) -> None:
    call = {**CALL, "function": {"name": "f", "arguments": arguments}}
    [message] = conversation.spelled(messages({"role": "assistant", "tool_calls": [call]}))
    assert message["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": shown}}]


def test_a_tool_result_needs_the_id_of_its_call() -> None:
    with pytest.raises(BadRequest, match=r"messages\[0\].tool_call_id"):
        conversation.spelled(messages({"role": "tool", "content": "x"}))


def test_strictness_is_not_shown() -> None:
    tool = Tool.model_validate({"type": "function", "function": {"name": "f", "strict": False, "parameters": {"b": 1}}})
    assert conversation.declared([tool]) == [{"type": "function", "function": {"name": "f", "parameters": {"b": 1}}}]


def loop(body: str) -> str:
    return "{% for m in messages %}{{ m.role }}:" + body + ";{% endfor %}"


TEMPLATES = [
    ("objects", loop("{% for c in m.tool_calls or [] %}{{ c.function.arguments.a + 1 }}{% endfor %}"), "assistant:2;"),
    ("text", loop("{% for c in m.tool_calls or [] %}{{ '=' + c.function.arguments }}{% endfor %}"), 'assistant:={"a": 1};'),
    ("only beside null", loop("{% if m.tool_calls and m.content is none %}CALL{% endif %}"), "assistant:CALL;"),
    ("text beside null", loop("{% if m.content is none %}{{ '=' + m.tool_calls[0].function.arguments }}{% endif %}"), 'assistant:={"a": 1};'),
    ("calls are needed", "{% if not messages[1].tool_calls %}{{ raise_exception('no call') }}{% endif %}ok", "ok"),
    ("never", loop("{{ m.content }}"), "assistant:;tool:done;"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "shown"), [t[1:] for t in TEMPLATES], ids=[t[0] for t in TEMPLATES])
def test_earlier_calls_are_shown_in_the_spelling_that_the_template_takes(
    model: ServedModel, template: str, shown: str
) -> None:
    def encode(spelling: conversation.Messages) -> list[int]:
        return model.tokenizer.encode_chat(ChatTemplate(template), {}, {"messages": spelling})

    assert shown in model.tokenizer.decode(conversation.encoded(messages(*HISTORY), encode))


def test_a_template_that_takes_no_spelling_refuses_in_its_own_words(model: ServedModel) -> None:
    def encode(spelling: conversation.Messages) -> list[int]:
        template = ChatTemplate("{{ raise_exception('one call at most') }}")
        return model.tokenizer.encode_chat(template, {}, {"messages": spelling})

    with pytest.raises(BadRequest, match="one call at most"):
        conversation.encoded(messages(*HISTORY), encode)
