"""Stop strings: what is held back, where free text is cut, and that a document never is."""

from __future__ import annotations

import pytest
from guided_engine.stops import StopStrings


def run(stops: StopStrings, pushes: list[tuple[str, bool]]) -> tuple[str, bool]:
    text = ""
    for piece, complete in pushes:
        text += stops.push(piece, complete)
        if stops.is_hit:
            return text, True
    return text + stops.flush(), False


@pytest.mark.parametrize(
    ("stops", "pieces", "text", "hit"),
    [
        ((), ["a", "b"], "ab", False),
        (("",), ["a"], "a", False),
        (("END",), ["a E", "N", "D b"], "a ", True),
        (("END",), ["a E", "N", "X"], "a ENX", False),
        (("END",), ["EEND"], "E", True),
        (("aab",), ["a", "a", "a", "b"], "a", True),
        (("x", "bc"), ["abcx"], "a", True),
        (("\n\n",), ["a\n", "\nb"], "a", True),
    ],
)
def test_free_text_ends_right_before_the_stop_string(
    stops: tuple[str, ...], pieces: list[str], text: str, hit: bool
) -> None:
    assert run(StopStrings(stops), [(p, True) for p in pieces]) == (text, hit)


@pytest.mark.parametrize(
    ("pushes", "text", "hit"),
    [
        ([("ab", False), ("x", True), ("c", False)], "ab", True),
        ([("ab", False), ("x", False), ("c", False)], "abxc", False),
        ([("ab", False), ("cx", True)], "ab", True),
        ([("ab", False), ("x", False), ("cx", True)], "abx", True),
    ],
)
def test_a_document_is_cut_only_where_it_is_whole(pushes: list[tuple[str, bool]], text: str, hit: bool) -> None:
    assert run(StopStrings(("x",), constrained=True), pushes) == (text, hit)


def test_text_that_cannot_begin_a_stop_string_is_released_at_once() -> None:
    stops = StopStrings(("END",))
    assert [stops.push(p, True) for p in ("abc", "E", "x")] == ["abc", "", "Ex"]
