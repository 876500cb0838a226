"""Markup inside of values, markup that is missing, and markup that holds nothing."""

from __future__ import annotations

from typing import Any

import pytest
from guided_grammar.formats import tool_format
from tool_calls.judge import read

SCHEMAS = {
    "f": {"properties": {"text": {"type": "string"}, "list": {"type": "array"}, "any": {}}},
    "now": {"properties": {}},
}
MINIMAX = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="{}">{}</parameter>\n</invoke>\n</minimax:tool_call>'
GLM = "<tool_call>f<arg_key>{}</arg_key><arg_value>{}</arg_value></tool_call>"
QWEN = "<tool_call>\n<function=f>\n<parameter={}>\n{}\n</parameter>\n</function>\n</tool_call>"
DEEP = "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>"
CASES: list[tuple[str, str, str, str, list[tuple[str, str]]]] = [
    # name, format, text, content, calls
    ("a closer inside a list", "minimax_m2", MINIMAX.format("list", '["a</parameter>", 1]'), "", [("f", '{"list": ["a</parameter>", 1]}')]),
    ("a closer inside an object", "glm47", GLM.format("any", '{"a": "</arg_value>"}'), "", [("f", '{"any": {"a": "</arg_value>"}}')]),
    ("an opener inside a list", "qwen_xml", QWEN.format("list", '[\n"<parameter=x>"\n]'), "", [("f", '{"list": ["<parameter=x>"]}')]),
    ("a string that begins like a list", "minimax_m2", MINIMAX.format("text", "[a"), "", [("f", '{"text": "[a"}')]),
    ("a value that ends at the next argument", "qwen_xml",
     "<tool_call>\n<function=f>\n<parameter=text>\na\n<parameter=any>\n1\n</parameter>\n</function>\n</tool_call>", "", [("f", '{"text": "a", "any": 1}')]),
    ("arguments that may go on", "glm47", "<tool_call>f<arg_key>text</arg_key><arg_value>a</arg_value>", "", [("f", '{"text": "a"')]),
    ("a section without a call", "kimi_k2", "Hm. <|tool_calls_section_begin|> <|tool_calls_section_end|>", "Hm. ", []),
    ("an opener at the end", "mistral_v11", "Hm.[TOOL_CALLS]", "Hm.", []),
    ("a call without its own opener", "deepseek_v3_1", DEEP.format("now<｜tool▁sep｜>{}"), DEEP.format("now<｜tool▁sep｜>{}"), []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "content", "calls"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_markup_reads_as_and_at_any_cut(name: str, text: str, content: str, calls: list[tuple[str, str]]) -> None:
    def of(*pieces: str) -> tuple[str, list[tuple[str, str]]]:
        message: dict[str, Any] = read(tool_format(name), pieces, schemas=SCHEMAS)[0]
        functions = [call["function"] for call in message.get("tool_calls", ())]
        return message["content"] or "", [(f["name"], f["arguments"]) for f in functions]

    assert of(text) == (content, calls)
    assert of(*text) == (content, calls)
    assert all(of(text[:cut], text[cut:]) == (content, calls) for cut in range(len(text)))


@pytest.mark.parametrize("text", ["[THINK]r[/THINK]c", "<think>r</think>c", "<think>\nr\n</think>\n\nc"])
def test_older_models_of_a_family_reason_between_other_markers(text: str) -> None:
    for pieces in ([text], list(text)):
        message, _ = read(tool_format("mistral_v11"), pieces, inside=False)
        assert (message["reasoning"], message["content"]) == ("r", "c")
