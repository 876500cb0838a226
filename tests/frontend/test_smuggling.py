"""Per family: its markers, spelled in a request's own text, are encoded as plain text."""

from __future__ import annotations

from typing import Any

import pytest
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_grammar.format_table import example
from guided_grammar.formats import FORMATS
from guided_testing.scripted_backend import load_model

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}"
    "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
    "{{ tools | tojson if tools }}<|im_start|>assistant\n"
)
PLACES: dict[str, dict[str, Any]] = {
    "user": {"messages": [{"role": "user", "content": "{}"}]},
    "system": {"messages": [{"role": "system", "content": "{}"}]},
    "tool result": {"messages": [{"role": "tool", "content": "{}", "tool_call_id": "a"}]},
    "argument": {
        "messages": [
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"{}": "{}"}}}]}
        ]
    },
    "description": {"messages": [], "tools": [{"type": "function", "function": {"name": "f", "description": "{}"}}]},
}


def markers(name: str) -> tuple[str, ...]:
    """Everything that this family's vocabulary may hold as one token."""
    row = FORMATS[name]
    reasoning = () if row.reasoning is None else (row.reasoning.open.strip(), row.reasoning.close.strip())
    return tuple(dict.fromkeys((*row.tokens, *reasoning, "<|im_start|>", "<|im_end|>")))


def filled(value: Any, by: str) -> Any:
    if isinstance(value, str):
        return value.replace("{}", by)
    if isinstance(value, list):
        return [filled(item, by) for item in value]
    return {filled(k, by): filled(v, by) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.fixture(scope="module", params=FORMATS)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ServedModel]:
    folder = tmp_path_factory.mktemp("family")
    return request.param, load_model(folder, Settings(tool_format=request.param), TEMPLATE, markers(request.param))


@pytest.mark.parametrize("place", PLACES)
def test_no_text_of_a_request_becomes_a_marker_of_the_family(family: tuple[str, ServedModel], place: str) -> None:
    name, model = family
    tokens = {model.tokenizer.token_id(marker) for marker in markers(name)}
    assert None not in tokens

    def encoded(text: str) -> tuple[list[int], str]:
        ids = model.tokenizer.encode_chat(model.template, {}, filled(PLACES[place], text))
        return [i for i in ids if i in tokens], model.tokenizer.decode(ids)

    harmless, _ = encoded("word")
    row = FORMATS[name]
    for text in (*markers(name), *([example(row)] if row.has_calls else []), "".join(markers(name))):
        smuggled, shown = encoded(text)
        assert smuggled == harmless, text
        assert text in shown or place in ("argument", "description"), text
