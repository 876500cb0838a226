"""The table: one row per model family."""

from __future__ import annotations

from dataclasses import replace

from guided_grammar.format_row import CallStyle, Reasoning, ToolFormat

STRING_MARK = '<|"|>'
"""Begins and ends a string of style GEMMA."""
THINK = Reasoning("<think>\n", "</think>\n\n")
_THINK_OPENED = Reasoning("<think>\n", "</think>\n\n", opened_by_prompt=True)
_OBJECT = ToolFormat(
    name="",
    models="",
    style=CallStyle.JSON,
    before_name='{"name": "',
    after_name='", "arguments": ',
    after_arguments="}",
)

HERMES = replace(
    _OBJECT,
    name="hermes",
    models="Hermes 2/3, Qwen2.5, QwQ, Qwen3, Granite 4, SmolLM2",
    trigger="<tool_call>",
    call_open="<tool_call>\n",
    call_close="\n</tool_call>",
    between="\n",
    tokens=("<tool_call>", "</tool_call>"),
    reasoning=THINK,
)
LLAMA3_JSON = ToolFormat(
    name="llama3_json",
    models="Llama 3.1/3.2/3.3",
    style=CallStyle.JSON,
    also=("<|python_tag|>",),
    prefix="<|python_tag|>",
    between="; ",
    before_name='{"name": "',
    after_name='", "parameters": ',
    after_arguments="}",
    tokens=("<|python_tag|>",),
)
MISTRAL_V3 = replace(
    _OBJECT,
    name="mistral_v3",
    models="Mistral 7B v0.3, Nemo, Mixtral 8x22B",
    trigger="[TOOL_CALLS]",
    open="[TOOL_CALLS][",
    close="]",
    between=", ",
    tokens=("[TOOL_CALLS]",),
)
MISTRAL_V11 = ToolFormat(
    name="mistral_v11",
    models="Mistral Small 3.2, Magistral, Ministral 3, Devstral",
    style=CallStyle.JSON,
    trigger="[TOOL_CALLS]",
    call_open="[TOOL_CALLS]",
    after_name="[ARGS]",
    tokens=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
    reasoning=Reasoning("[THINK]", "[/THINK]"),
)
DEEPSEEK_V3 = ToolFormat(
    name="deepseek_v3",
    models="DeepSeek V3, R1, R1 distills",
    style=CallStyle.JSON,
    trigger="<｜tool▁calls▁begin｜>",
    also=("<｜tool▁call▁begin｜>",),
    open="<｜tool▁calls▁begin｜>",
    close="<｜tool▁calls▁end｜>",
    call_open="<｜tool▁call▁begin｜>",
    call_close="<｜tool▁call▁end｜>",
    between="\n",
    before_name="function<｜tool▁sep｜>",
    after_name="\n```json\n",
    after_arguments="\n```",
    tokens=(
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁sep｜>",
    ),
    reasoning=_THINK_OPENED,
)
DEEPSEEK_V3_1 = ToolFormat(
    name="deepseek_v3_1",
    models="DeepSeek V3.1",
    style=CallStyle.JSON,
    trigger=DEEPSEEK_V3.trigger,
    also=DEEPSEEK_V3.also,
    open=DEEPSEEK_V3.open,
    close=DEEPSEEK_V3.close,
    call_open=DEEPSEEK_V3.call_open,
    call_close=DEEPSEEK_V3.call_close,
    after_name="<｜tool▁sep｜>",
    tokens=DEEPSEEK_V3.tokens,
    reasoning=_THINK_OPENED,
)
KIMI_K2 = ToolFormat(
    name="kimi_k2",
    models="Kimi K2, K2-Thinking",
    style=CallStyle.JSON,
    trigger="<|tool_calls_section_begin|>",
    also=("<|tool_call_begin|>",),
    open="<|tool_calls_section_begin|>",
    close="<|tool_calls_section_end|>",
    call_open="<|tool_call_begin|>",
    call_close="<|tool_call_end|>",
    before_name="functions.",
    after_name=":{index}<|tool_call_argument_begin|>",
    tokens=(
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_end|>",
        "<|tool_call_argument_begin|>",
    ),
    reasoning=Reasoning(
        "<think>\n", "</think>\n\n", interrupted_by=("<|tool_calls_section_begin|>", "<|tool_call_begin|>")
    ),
)
PHI4_MINI = replace(
    _OBJECT,
    name="phi4_mini",
    models="Phi-4-mini",
    trigger="<|tool_call|>",
    also=("functools[",),
    open="<|tool_call|>[",
    close="]<|/tool_call|>",
    between=", ",
    tokens=("<|tool_call|>", "<|/tool_call|>"),
)
GRANITE3 = replace(
    _OBJECT,
    name="granite3",
    models="Granite 3.0 to 3.3",
    trigger="<|tool_call|>",
    also=("<tool_call>",),
    open="<|tool_call|>[",
    close="]",
    between=", ",
    tokens=("<|tool_call|>", "<tool_call>"),
    reasoning=THINK,
)
QWEN_XML = ToolFormat(
    name="qwen_xml",
    models="Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5",
    style=CallStyle.XML,
    trigger="<tool_call>",
    also=("<function=",),
    call_open="<tool_call>\n",
    call_close="\n</tool_call>",
    between="\n",
    before_name="<function=",
    after_name=">\n",
    after_arguments="</function>",
    argument_open="<parameter=",
    after_key=">\n",
    argument_close="\n</parameter>\n",
    tokens=("<tool_call>", "</tool_call>"),
    reasoning=replace(_THINK_OPENED, interrupted_by=("<tool_call>\n<function=",)),
)
GLM45 = ToolFormat(
    name="glm45",
    models="GLM-4.5, GLM-4.6",
    style=CallStyle.XML,
    trigger="<tool_call>",
    call_open="<tool_call>",
    call_close="</tool_call>",
    between="\n",
    after_name="\n",
    argument_open="<arg_key>",
    after_key="</arg_key>\n<arg_value>",
    argument_close="</arg_value>\n",
    tokens=("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    reasoning=THINK,
)
GLM47 = replace(
    GLM45,
    name="glm47",
    models="GLM-4.7, GLM-5",
    between="",
    after_name="",
    after_key="</arg_key><arg_value>",
    argument_close="</arg_value>",
    reasoning=_THINK_OPENED,
)
MINIMAX_M2 = ToolFormat(
    name="minimax_m2",
    models="MiniMax M2",
    style=CallStyle.XML,
    trigger="<minimax:tool_call>",
    open="<minimax:tool_call>\n",
    close="</minimax:tool_call>",
    call_close="\n",
    before_name='<invoke name="',
    after_name='">\n',
    after_arguments="</invoke>",
    argument_open='<parameter name="',
    after_key='">',
    argument_close="</parameter>\n",
    tokens=("<minimax:tool_call>", "</minimax:tool_call>"),
    reasoning=_THINK_OPENED,
)
PYTHONIC = ToolFormat(
    name="pythonic",
    models="Llama 3.2, Llama 4",
    style=CallStyle.PYTHON,
    also=("<|python_start|>",),
    prefix="<|python_start|>",
    suffix="<|python_end|>",
    open="[",
    close="]",
    between=", ",
    after_name="(",
    after_arguments=")",
    tokens=("<|python_start|>", "<|python_end|>"),
)
LFM2 = ToolFormat(
    name="lfm2",
    models="LFM2, LFM2.5",
    style=CallStyle.PYTHON,
    trigger="<|tool_call_start|>",
    open="<|tool_call_start|>[",
    close="]<|tool_call_end|>",
    between=", ",
    after_name="(",
    after_arguments=")",
    tokens=("<|tool_call_start|>", "<|tool_call_end|>"),
    reasoning=THINK,
)
GEMMA4 = ToolFormat(
    name="gemma4",
    models="Gemma 4",
    style=CallStyle.GEMMA,
    trigger="<|tool_call>",
    call_open="<|tool_call>",
    call_close="<tool_call|>",
    before_name="call:",
    after_name="{",
    after_arguments="}",
    tokens=("<|tool_call>", "<tool_call|>", STRING_MARK),
    reasoning=Reasoning("<|channel>thought\n", "<channel|>", strays=("<|channel>thought", "<|channel>", "<channel|>")),
    is_sorted=True,
)
GPT_OSS = ToolFormat(
    name="gpt_oss",
    models="GPT-OSS",
    style=CallStyle.HARMONY,
    trigger="to=functions.",
    prefix="<|channel|>commentary ",
    call_open="to=functions.",
    after_name=" <|constrain|>json<|message|>",
    tokens=("<|channel|>", "<|constrain|>", "<|message|>", "<|start|>", "<|end|>"),
    is_single=True,
)
CONTENT_ONLY = ToolFormat(name="content_only", models="any other", reasoning=THINK)

ROWS = (
    HERMES,
    LLAMA3_JSON,
    MISTRAL_V3,
    MISTRAL_V11,
    DEEPSEEK_V3,
    DEEPSEEK_V3_1,
    KIMI_K2,
    PHI4_MINI,
    GRANITE3,
    QWEN_XML,
    GLM45,
    GLM47,
    MINIMAX_M2,
    PYTHONIC,
    LFM2,
    GEMMA4,
    GPT_OSS,
    CONTENT_ONLY,
)
