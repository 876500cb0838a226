from __future__ import annotations

import pytest
from guided_frontend.reasoning import ReasoningSplitter
from guided_grammar.formats import THINK


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
