from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.format_table import example
from guided_grammar.formats import FORMATS, CallStyle, tool_format
from guided_grammar.session import MaskEngine, Session
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary
from guided_testing.byte_tokenizer import accepts, compile_bytes

TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
    {"name": "now", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}},
]
PARIS = '{"city": "Paris", "days": 2}'

# Per row: one call; two calls; texts that are almost calls.
DEEP = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
EXAMPLES: dict[str, tuple[str, str, list[str]]] = {
    "hermes": (
        f'<tool_call>\n{{"name": "get_weather", "arguments": {PARIS}}}\n</tool_call>',
        f'<tool_call>\n{{"name": "get_weather", "arguments": {PARIS}}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
        ['<tool_call>\n{"name": "later", "arguments": {}}\n</tool_call>'],
    ),
    "llama3_json": (
        f'{{"name": "get_weather", "parameters": {PARIS}}}',
        f'{{"name": "get_weather", "parameters": {PARIS}}}; {{"name": "now", "parameters": {{}}}}',
        [f'{{"name": "get_weather", "arguments": {PARIS}}}', '{"name": "now", "parameters": {"a": 1}}'],
    ),
    "mistral_v3": (
        f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {PARIS}}}]',
        f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {PARIS}}}, {{"name": "now", "arguments": {{}}}}]',
        ["[TOOL_CALLS][]", f'[TOOL_CALLS]{{"name": "get_weather", "arguments": {PARIS}}}'],
    ),
    "mistral_v11": (
        f"[TOOL_CALLS]get_weather[ARGS]{PARIS}",
        f"[TOOL_CALLS]get_weather[ARGS]{PARIS}[TOOL_CALLS]now[ARGS]{{}}",
        ["[TOOL_CALLS]later[ARGS]{}", "[TOOL_CALLS]now"],
    ),
    "deepseek_v3": (
        f"{DEEP[0]}<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{PARIS}\n```<｜tool▁call▁end｜>{DEEP[1]}",
        f"{DEEP[0]}<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{PARIS}\n```<｜tool▁call▁end｜>\n"
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{{}}\n```<｜tool▁call▁end｜>{DEEP[1]}",
        [DEEP[0] + DEEP[1]],
    ),
    "deepseek_v3_1": (
        f"{DEEP[0]}<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{PARIS}<｜tool▁call▁end｜>{DEEP[1]}",
        f"{DEEP[0]}<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{PARIS}<｜tool▁call▁end｜>"
        f"<｜tool▁call▁begin｜>now<｜tool▁sep｜>{{}}<｜tool▁call▁end｜>{DEEP[1]}",
        [DEEP[0] + DEEP[1]],
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        f"{PARIS}<|tool_call_end|><|tool_calls_section_end|>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        f"{PARIS}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
        "<|tool_calls_section_end|>",
        ["<|tool_calls_section_begin|><|tool_calls_section_end|>"],
    ),
    "phi4_mini": (
        f'<|tool_call|>[{{"name": "get_weather", "arguments": {PARIS}}}]<|/tool_call|>',
        f'<|tool_call|>[{{"name": "get_weather", "arguments": {PARIS}}}, {{"name": "now", "arguments": {{}}}}]<|/tool_call|>',
        ["<|tool_call|>[]<|/tool_call|>"],
    ),
    "granite3": (
        f'<|tool_call|>[{{"name": "get_weather", "arguments": {PARIS}}}]',
        f'<|tool_call|>[{{"name": "get_weather", "arguments": {PARIS}}}, {{"name": "now", "arguments": {{}}}}]',
        ["<|tool_call|>[]"],
    ),
    "qwen_xml": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
        '<tool_call>\n<function=get_weather>\n<parameter=city>\n"3\n\n</parameter>\n</function>\n</tool_call>\n'
        "<tool_call>\n<function=now>\n</function>\n</tool_call>",
        ["<tool_call>\n<function=get_weather>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>"],
    ),
    "glm45": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
        "<tool_call>now\n</tool_call>",
        ["<tool_call>get_weather\n</tool_call>"],
    ),
    "glm47": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key>"
        "<arg_value>2</arg_value></tool_call>",
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>3</arg_value></tool_call><tool_call>now</tool_call>",
        ["<tool_call>get_weather</tool_call>"],
    ),
    "minimax_m2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n'
        '<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">3</parameter>\n</invoke>\n'
        '<invoke name="now">\n</invoke>\n</minimax:tool_call>',
        ['<minimax:tool_call>\n<invoke name="get_weather">\n</invoke>\n</minimax:tool_call>'],
    ),
    "pythonic": (
        '[get_weather(city="Paris", days=2)]',
        '[get_weather(city="3"), now()]',
        ["[get_weather(city=3)]", "[get_weather(days=2)]", "[]"],
    ),
    "lfm2": (
        '<|tool_call_start|>[get_weather(city="Paris", days=2)]<|tool_call_end|>',
        '<|tool_call_start|>[get_weather(city="3"), now()]<|tool_call_end|>',
        ["<|tool_call_start|>[get_weather(days=2)]<|tool_call_end|>"],
    ),
    "gemma4": (
        '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>',
        '<|tool_call>call:get_weather{city:<|"|>"3"<|"|>}<tool_call|><|tool_call>call:now{}<tool_call|>',
        [
            '<|tool_call>call:get_weather{days:2,city:<|"|>Paris<|"|>}<tool_call|>',
            "<|tool_call>call:get_weather{city:3}",
        ],
    ),
    "gpt_oss": (
        f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{PARIS}",
        f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{PARIS}to=functions.now",
        ["<|channel|>commentary to=functions.later <|constrain|>json<|message|>{}"],
    ),
}
CALLING = [name for name, row in FORMATS.items() if row.has_calls]


def compiled(name: str, choice: Any, parallel: bool = True) -> Any:
    value = {"format": name, "tools": TOOLS, "choice": choice, "parallel": parallel}
    return compile_bytes(compile_spec(GrammarSpec(Kind.TOOLS, value)).text)


def test_every_format_with_calls_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(CALLING)


@pytest.mark.parametrize("name", CALLING)
def test_required_and_named_calls_are_written_as_the_family_writes_them(name: str) -> None:
    one, two, wrong = EXAMPLES[name]
    required, named = compiled(name, "required"), compiled(name, {"name": "get_weather"})
    assert accepts(required, one) and accepts(named, one)
    assert accepts(required, two) is not FORMATS[name].is_single
    assert [text for text in ("", "Hello", *wrong, one[:-1]) if accepts(required, text)] == []
    assert not accepts(named, two)


@pytest.mark.parametrize("name", CALLING)
def test_f27_without_parallel_calls_the_grammar_holds_at_most_one(name: str) -> None:
    one, two, _ = EXAMPLES[name]
    for choice in ("required", "auto"):
        single = compiled(name, choice, parallel=False)
        assert accepts(single, one) and not accepts(single, two)


@pytest.mark.parametrize("name", CALLING)
def test_auto_leaves_text_free_and_binds_what_the_markup_opens(name: str) -> None:
    one, two, wrong = EXAMPLES[name]
    auto = compiled(name, "auto")
    assert [text for text in ("", "Hello, 3 < 4.", one) if not accepts(auto, text)] == []
    assert accepts(auto, two) is not FORMATS[name].is_single
    assert [text for text in wrong if accepts(auto, text)] == []
    assert accepts(auto, f"Let me see. {one}") or not tool_format(name).trigger


@pytest.mark.parametrize("name", [n for n in CALLING if FORMATS[n].also])
def test_free_text_never_holds_other_markup_that_a_reader_takes_for_calls(name: str) -> None:
    auto = compiled(name, "auto")
    assert accepts(auto, "Well, f(1) and [a].")
    assert [mark for mark in FORMATS[name].also if accepts(auto, f"Well {mark} so")] == []


@pytest.mark.parametrize("name", [n for n in CALLING if FORMATS[n].reasoning and FORMATS[n].trigger])
def test_f14_no_block_of_reasoning_begins_within_an_answer(name: str) -> None:
    reasoning = FORMATS[name].reasoning
    assert reasoning is not None
    assert not accepts(compiled(name, "auto"), f"{reasoning.open}a{reasoning.close}b")


def test_markers_that_are_tokens_are_named_by_the_grammar() -> None:
    value = {"format": "mistral_v11", "tools": TOOLS, "choice": "required"}
    assert compile_spec(GrammarSpec(Kind.TOOLS, value)).markers >= {"[TOOL_CALLS]", "[ARGS]"}


@pytest.mark.parametrize(
    "name", [n for n in CALLING if FORMATS[n].trigger and FORMATS[n].style is not CallStyle.HARMONY]
)
def test_markers_are_written_as_their_tokens_and_never_spelled(name: str) -> None:
    row = FORMATS[name]
    marks = sorted(row.markers)
    engine = MaskEngine(Vocabulary((*(bytes([b]) for b in range(256)), b"", *[b""] * len(marks)), (256,),
                                   {mark: 257 + i for i, mark in enumerate(marks)}))  # fmt: skip
    value = {"format": name, "tools": TOOLS, "choice": {"name": "now"}}
    made = compile_spec(GrammarSpec(Kind.TOOLS, value))
    session = engine.session(engine.compile(made.text, made.markers))
    written = ""
    while not session.is_complete:
        token = first_legal(session, marks)
        assert session.accept(token)
        written += marks[token - 257] if token > 256 else chr(token) if token < 128 else ""
    assert written.startswith(row.trigger) and "now" in written


def first_legal(session: Session, marks: list[str]) -> int:
    """A marker's token where one is legal, and then its spelling is not; else the first legal byte."""
    bits = np.zeros((1, -(-(257 + len(marks)) // 32)), np.int32)
    session.fill(bits, 0)
    found = [int(i) for i in np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))]
    markers = [token for token in found if token > 256]
    assert [mark for mark in markers if marks[mark - 257].encode()[0] in found] == []
    return markers[0] if markers else found[0]


@pytest.mark.parametrize(
    ("name", "tool", "where"),
    [
        ("qwen_xml", {"name": "f>g"}, "/tools/0/function/name"),
        ("mistral_v11", {"name": "a b"}, "/tools/0/function/name"),
        (
            "pythonic",
            {"name": "f", "parameters": {"properties": {"a b": {}}, "required": ["a b"]}},
            "/tools/0/function",
        ),
        ("gemma4", {"name": "f", "parameters": {"properties": {"a:b": {}}, "required": ["a:b"]}}, "/tools/0/function"),
        ("glm47", {"name": "f", "parameters": {"properties": {"<a": {}}, "required": ["<a"]}}, "/tools/0/function"),
    ],
)
def test_names_that_a_format_cannot_write_are_refused_with_their_place(
    name: str, tool: dict[str, Any], where: str
) -> None:
    with pytest.raises(UnsupportedConstraint, match="cannot") as caught:
        compile_spec(GrammarSpec(Kind.TOOLS, {"format": name, "tools": [tool], "choice": "required"}))
    assert caught.value.path.startswith(where)


@pytest.mark.parametrize(
    ("name", "keys", "text"),
    [
        ("pythonic", ["a-b", "c.d"], "[f(a-b=1, c.d=2)]"),
        (
            "gemma4",
            ["key with space", "X (required)"],
            "<|tool_call>call:f{key with space:1,X (required):2}<tool_call|>",
        ),
        ("gemma4", ["b", "A", "a_c"], "<|tool_call>call:f{A:2,a_c:3,b:1}<tool_call|>"),
    ],
    ids=["no identifier", "blanks", "f38 sorted as templates sort"],
)
def test_names_that_a_reader_understands_can_be_written(name: str, keys: list[str], text: str) -> None:
    schema = {"properties": {key: {"const": at + 1} for at, key in enumerate(keys)}, "required": keys}
    value = {"format": name, "tools": [{"name": "f", "parameters": schema}], "choice": "required", "parallel": False}
    assert accepts(compile_bytes(compile_spec(GrammarSpec(Kind.TOOLS, value)).text), text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mistral_v3", '[TOOL_CALLS] [{"name": "now", "arguments": {}, "id": "a1B2c3D4e"}]'),
        ("mistral_v11", "[TOOL_CALLS]now[CALL_ID]a1B2c3D4e[ARGS]{}"),
        (
            "kimi_k2",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0 <|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        ),
        ("gpt_oss", " to=functions.now<|channel|>commentary json<|message|>{}"),
        ("gpt_oss", "<|channel|>commentary to=functions.now<|constrain|>json<|message|>{}"),
    ],
)
def test_a_model_may_spell_its_calls_as_it_was_taught_where_they_are_left_to_it(name: str, text: str) -> None:
    assert accepts(compiled(name, "auto"), text)
    assert not accepts(compiled(name, "auto"), text.replace("now", "later"))


def test_f33_python_and_json_booleans_are_both_written() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"on": {"type": "boolean"}}, "required": ["on"]}}]
    value = {"format": "qwen_xml", "tools": tools, "choice": "required"}
    grammar = compile_bytes(compile_spec(GrammarSpec(Kind.TOOLS, value)).text)
    texts = {word: f"<tool_call>\n<function=f>\n<parameter=on>\n{word}\n</parameter>\n</function>\n</tool_call>"
             for word in ("true", "false", "True", "False", "yes", "TRUE")}  # fmt: skip
    assert [word for word, text in texts.items() if accepts(grammar, text)] == ["true", "false", "True", "False"]


@pytest.mark.parametrize(
    ("name", "text", "follows"),
    [
        ("gemma4", '<|tool_call>call:f{p:{n:[1,2],x:<|"|>a<|"|>}}<tool_call|>', True),
        ("gemma4", "<|tool_call>call:f{p:{x:7}}<tool_call|>", False),
        ("gemma4", '<|tool_call>call:f{p:{n:[<|"|>1<|"|>],x:<|"|>a<|"|>}}<tool_call|>', False),
        ("lfm2", '<|tool_call_start|>[f(p={"x": "a", "n": [1, 2]})]<|tool_call_end|>', True),
        ("lfm2", '<|tool_call_start|>[f(p={"x": None})]<|tool_call_end|>', False),
        ("glm47", '<tool_call>f<arg_key>p</arg_key><arg_value>{"x": "a", "n": [1, 2]}</arg_value></tool_call>', True),
        ("glm47", '<tool_call>f<arg_key>p</arg_key><arg_value>{"x": 1}</arg_value></tool_call>', False),
    ],
)
def test_f40_nested_values_are_exact_in_every_style(name: str, text: str, follows: bool) -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string"}, "n": {"type": "array", "items": {"type": "integer"}}},
             "required": ["x"], "additionalProperties": False}  # fmt: skip
    tools = [{"name": "f", "parameters": {"properties": {"p": inner}, "required": ["p"]}}]
    value = {"format": name, "tools": tools, "choice": "required"}
    assert accepts(compile_bytes(compile_spec(GrammarSpec(Kind.TOOLS, value)).text), text) is follows


@pytest.mark.parametrize("name", CALLING)
def test_the_call_that_the_page_shows_is_the_one_that_the_grammar_writes(name: str) -> None:
    assert example(FORMATS[name]) == EXAMPLES[name][0]
