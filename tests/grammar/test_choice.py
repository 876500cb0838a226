"""guided_choice: exactly one of the listed texts."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from guided_grammar.choice import compile_choice
from guided_grammar.errors import InvalidConstraint, LimitExceeded
from guided_grammar.limits import Limits
from guided_testing.byte_tokenizer import accepts, compile_bytes

CASES: list[tuple[list[str], list[str]]] = [
    (["yes", "no", "maybe"], ["", "y", "yesno", "Yes", "yes "]),
    (["a", "ab", "abc"], ["", "b", "abcd", "ac"]),
    (["", "a"], ["b", "aa"]),
    ([""], ["a"]),
    (["x", "x"], ["", "xx"]),
    (["é", "è", "日本", "日"], ["e", "本", "日本日"]),
    (['"quoted"', "back\\slash", "new\nline", "tab\t", "nul\0", "[a-z]", "#"], ['"', "a", "back"]),
    (["😀😀", "😀"], ["😀😀😀"]),
]


@pytest.mark.parametrize(("choices", "others"), CASES)
def test_each_choice_is_accepted_and_nothing_else(choices: list[str], others: list[str]) -> None:
    compiled = compile_bytes(compile_choice(choices))
    assert [c for c in choices if not accepts(compiled, c)] == []
    assert [o for o in others if accepts(compiled, o)] == []


@pytest.mark.parametrize("seed", range(30))
def test_random_lists_over_two_letters_accept_exactly_their_members(seed: int) -> None:
    source = random.Random(seed)
    choices = ["".join(source.choices("ab", k=source.randint(0, 5))) for _ in range(source.randint(1, 12))]
    compiled = compile_bytes(compile_choice(choices))
    texts = ["".join(t) for n in range(6) for t in itertools.product("ab", repeat=n)]
    assert {t for t in texts if accepts(compiled, t)} == set(choices)


def test_thousands_of_choices_compile_and_are_told_apart() -> None:
    choices = [f"item-{i:04d}-{i * 7919 % 4096:04d}" for i in range(4096)]
    compiled = compile_bytes(compile_choice(choices, Limits(choice_bytes=100_000)))
    assert all(accepts(compiled, choices[i]) for i in (0, 1, 999, 4095))
    assert not accepts(compiled, "item-0001-0000")


def test_a_chain_of_prefixes_does_not_nest_the_grammar() -> None:
    choices = ["a" * n for n in range(1, 300)]
    compiled = compile_bytes(compile_choice(choices))
    assert accepts(compiled, "a" * 299) and not accepts(compiled, "a" * 300) and not accepts(compiled, "")


@pytest.mark.parametrize(
    ("choices", "path"),
    [([], ""), (None, ""), ("yes", ""), ({"a": 1}, ""), (["a", 1], "/1"), ([True], "/0"), (["a", "\ud800"], "/1")],
)
def test_anything_but_a_list_of_texts_is_invalid(choices: Any, path: str) -> None:
    with pytest.raises(InvalidConstraint) as caught:
        compile_choice(choices)
    assert (caught.value.keyword, caught.value.path) == ("choice", path)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(choice_count=2), "choices limit is 2, got 3"),
        (Limits(choice_bytes=6), "choice bytes limit is 6, got 7"),
        (Limits(emitted_bytes=10), "emitted grammar bytes limit is 10"),
    ],
)
def test_limits_count_entries_and_bytes(limits: Limits, message: str) -> None:
    with pytest.raises(LimitExceeded, match=message):
        compile_choice(["aaé", "bb", "c"], limits)


def test_a_list_at_the_limits_is_accepted() -> None:
    assert accepts(compile_choice(["aaé", "bb", "c"], Limits(choice_count=3, choice_bytes=7)), "aaé")
