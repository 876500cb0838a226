"""The table of tool call formats: one row per model family, found by name or proposed from a chat template.

The grammar that forces a call (`tools.py`) and the parser that reads it (the frontend) are both driven by a row, so
they cannot disagree.
"""

from __future__ import annotations

from guided_grammar.errors import InvalidConstraint
from guided_grammar.format_row import CallStyle, Reasoning, ToolFormat
from guided_grammar.format_rows import CONTENT_ONLY, HERMES, ROWS, STRING_MARK, THINK

__all__ = [
    "CONTENT_ONLY",
    "FORMATS",
    "HERMES",
    "STRING_MARK",
    "THINK",
    "CallStyle",
    "Reasoning",
    "ToolFormat",
    "proposed",
    "tool_format",
]

FORMATS: dict[str, ToolFormat] = {row.name: row for row in ROWS}


def tool_format(name: str) -> ToolFormat:
    """The row of that name; raises InvalidConstraint naming the known ones."""
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        known = ", ".join(sorted(FORMATS))
        raise InvalidConstraint(f"unknown tool format {name!r}; known: {known}", keyword="tool_format") from None


# What only templates of one format hold, the first that fits.
_SIGNS = (
    (("<|channel|>", "<|message|>"), "gpt_oss"),
    (("<|tool_call>",), "gemma4"),
    (("<minimax:tool_call>",), "minimax_m2"),
    (("<|tool_calls_section_begin|>",), "kimi_k2"),
    (("<｜tool▁calls▁begin｜>", "```json"), "deepseek_v3"),
    (("<｜tool▁calls▁begin｜>",), "deepseek_v3_1"),
    (("<arg_key>", "</arg_key>\n<arg_value>"), "glm45"),
    (("<arg_key>", "</arg_key>\\n<arg_value>"), "glm45"),
    (("<arg_key>",), "glm47"),
    (("]<]minimax[>[",), "content_only"),
    (("<function=", "<|python_tag|>"), "content_only"),
    (("<tool_calls>",), "content_only"),
    (("<tool_call>", "<function="), "qwen_xml"),
    (("<|tool_call_start|>",), "lfm2"),
    (("<|tool_list_start|>",), "lfm2"),
    (("[TOOL_CALLS]", "[ARGS]"), "mistral_v11"),
    (("[TOOL_CALLS]",), "mistral_v3"),
    (("<|tool_call|>", "<|/tool_call|>"), "phi4_mini"),
    (("<|tool_call|>",), "granite3"),
    (("<tool_call>",), "hermes"),
    (("<|python_tag|>",), "llama3_json"),
    (("<|eot_id|>", '"parameters"'), "llama3_json"),
    (("<|python_start|>",), "pythonic"),
)


def proposed(template: str) -> str:
    """The format that a chat template's markup suggests, `content_only` where it shows none."""
    return next((name for signs, name in _SIGNS if all(sign in template for sign in signs)), CONTENT_ONLY.name)
