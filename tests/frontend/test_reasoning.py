from __future__ import annotations

import pytest
from guided_frontend.reasoning import ReasoningSplitter
from guided_grammar.format_rows import GEMMA4, KIMI_K2, QWEN_XML
from guided_grammar.formats import THINK, ToolFormat


def split(inside: bool, *texts: str) -> tuple[str, str]:
    splitter = ReasoningSplitter(THINK, inside)
    pairs = [splitter.feed(text) for text in texts] + [splitter.finish()]
    return "".join(p[0] for p in pairs), "".join(p[1] for p in pairs)


CASES = [
    ("no block", False, "Hello <think>", ("", "Hello <think>")),
    ("block", False, "<think>\nHm, so.\n</think>\n\nYes.\n", ("Hm, so.", "Yes.\n")),
    ("blanks before the block", False, "\n <think>a</think>b", ("a", "b")),
    ("empty block", False, "<think>\n\n</think>\n\nYes", ("", "Yes")),
    ("opened by the prompt", True, "Hm < 3\n\nso</think>\n{}", ("Hm < 3\n\nso", "{}")),
    ("cut inside", True, "Hm, so", ("Hm, so", "")),
    ("cut in the closer", True, "Hm</thi", ("Hm</thi", "")),
    ("cut in the opener", False, "<thi", ("", "<thi")),
    ("nothing", False, "", ("", "")),
    ("a second block is answer", False, "<think>a</think>b<think>c</think>", ("a", "b<think>c</think>")),
]


@pytest.mark.parametrize(("inside", "text", "parts"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_text_splits_into_reasoning_and_answer_wherever_it_was_cut(
    inside: bool, text: str, parts: tuple[str, str]
) -> None:
    assert split(inside, text) == parts
    assert split(inside, *text) == parts
    for cut in range(len(text)):
        assert split(inside, text[:cut], text[cut:]) == parts


@pytest.mark.parametrize(
    ("row", "inside", "triggers", "text", "parts"),
    [
        (QWEN_XML, True, ("<tool_call>",), "\n<tool_call>\n<function=f>", ("", "<tool_call>\n<function=f>")),
        (QWEN_XML, True, (), "\n<tool_call>\n<function=f>", ("<tool_call>\n<function=f>", "")),
        (QWEN_XML, True, ("<tool_call>",), "I use <tool_call> now.</think>a", ("I use <tool_call> now.", "a")),
        (KIMI_K2, False, ("<|tool_call_begin|>",), "<think>a <|tool_call_begin|>f", ("a", "<|tool_call_begin|>f")),
        (KIMI_K2, False, (), "<think>a <|tool_call_begin|>f</think>b", ("a <|tool_call_begin|>f", "b")),
        (GEMMA4, False, (), "<|channel>thought\na<channel|>b<channel|>c<|channel>thought\nd<channel|>", ("ad", "bc")),
        (GEMMA4, False, ("<|tool_call>",), "a<channel|><|tool_call>f<channel|>", ("", "a<|tool_call>f<channel|>")),
    ],
)
def test_formats_differ_in_what_begins_and_ends_a_block(
    row: ToolFormat, inside: bool, triggers: tuple[str, ...], text: str, parts: tuple[str, str]
) -> None:
    assert row.reasoning is not None
    for texts in ([text], list(text), *([text[:cut], text[cut:]] for cut in range(len(text)))):
        splitter = ReasoningSplitter(row.reasoning, inside, triggers)
        pairs = [*(splitter.feed(piece) for piece in texts), splitter.finish()]
        assert ("".join(p[0] for p in pairs), "".join(p[1] for p in pairs)) == parts
