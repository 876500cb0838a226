from __future__ import annotations

from pathlib import Path

import pytest
from guided_grammar.errors import InvalidConstraint
from guided_grammar.format_table import markdown
from guided_grammar.formats import proposed, tool_format


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>", "hermes"),
        ("<tool_call>\n<function={{ name }}>\n<parameter=", "qwen_xml"),
        ("{{ '<tool_call>' + name + '\\n<arg_key>' }}</arg_key>\\n<arg_value>", "glm45"),
        ("{{ '<tool_call>' + name }}<arg_key>k</arg_key><arg_value>", "glm47"),
        ("<｜tool▁calls▁begin｜>{{ '\\n```json\\n' }}", "deepseek_v3"),
        ("<｜tool▁calls▁begin｜>", "deepseek_v3_1"),
        ("[TOOL_CALLS]{{ name }}[ARGS]", "mistral_v11"),
        ("[TOOL_CALLS] [", "mistral_v3"),
        ("<|eot_id|>{\"name\": \"f\", \"parameters\": ", "llama3_json"),
        ("<|start|>assistant<|channel|>final<|message|>", "gpt_oss"),
        ("<tool_calls>[...]</tool_calls> as said within <tool_call>", "content_only"),
        ("List of tools: <|tool_list_start|>[", "lfm2"),
        ("{{ messages }}", "content_only"),
    ],
)  # fmt: skip
def test_a_chat_template_proposes_the_format_that_it_writes(template: str, name: str) -> None:
    assert proposed(template) == name


def test_the_page_on_tool_calls_holds_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs/tool-calling.md").read_text(encoding="utf-8")
    shown = page.partition("format_table -->\n")[2].partition("<!-- end of formats -->")[0]
    assert shown == markdown()


def test_an_unknown_format_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidConstraint, match=r"'nowhere'; known: .*hermes"):
        tool_format("nowhere")
