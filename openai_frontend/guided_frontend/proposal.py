"""Which tool format a chat template speaks: a proposal for deployments that name none."""

from __future__ import annotations

from guided_grammar.formats import CONTENT_ONLY

# The first line all of whose texts the template holds, and none of those after "!", names the format.
_SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("minimax_m2", ("<minimax:tool_call>",)),
    ("kimi_k2", ("<|tool_calls_section_begin|>",)),
    ("gpt_oss", ("<|channel|>", "<|message|>", "<|start|>assistant")),
    ("lfm2", ("<|tool_call_start|>",)),
    ("gemma4", ("<tool_call|>",)),
    ("deepseek_v3", ("<｜tool▁calls▁begin｜>", "```json")),
    ("deepseek_v3_1", ("<｜tool▁calls▁begin｜>",)),
    ("mistral_v11", ("[TOOL_CALLS]", "[ARGS]")),
    ("mistral_v3", ("[TOOL_CALLS]",)),
    ("pythonic", ("<|python_start|>",)),
    ("llama3_json", ("<|python_tag|>", "!<function=")),
    ("llama3_json", ("<|start_header_id|>", '{"name": function name, "parameters": ')),
    ("glm47", ("<tool_call>", "</arg_key><arg_value>")),
    ("glm45", ("<tool_call>", "<arg_key>")),
    ("qwen_xml", ("<tool_call>", "<function=", "<parameter=")),
    ("granite3", ("<|tool_call|>", "<|start_of_role|>")),
    ("phi4_mini", ("<|tool_call|>",)),
    ("hermes", ("<tool_call>", "!<function=", "!]<]minimax[>[")),
)
CHATML = "<|im_start|>"


def proposed_format(template: str) -> str:
    """The name of a row; `content_only` where no markup is recognised."""
    for name, signs in _SIGNS:
        if all((sign[1:] not in template) if sign[0] == "!" else (sign in template) for sign in signs):
            return name
    return CONTENT_ONLY.name


def takes_ours(template: str) -> bool:
    """Whether it is ChatML that shows no tools, in whose place our template with Hermes calls can stand."""
    shows = any(word in template for word in ("tools", "enable_thinking"))
    return CHATML in template and not shows and proposed_format(template) == CONTENT_ONLY.name
