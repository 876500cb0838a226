"""Look-ahead at the beginning of an anchored regex, which is a condition on the text as a whole.

`^(?!A)(?=B)C` matches where `^C` does, `^A` does not and `^B` does. Look-around anywhere else is left to the parser,
which refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

_OPENINGS = {"(?=": False, "(?!": True}


@dataclass(frozen=True)
class Ahead:
    """conditions: (regex, whether it must not match) at the beginning. rest: the regex that follows them."""

    conditions: tuple[tuple[str, bool], ...]
    rest: str


def leading(pattern: str, *, anchored: bool) -> Ahead | None:
    """None for a regex that does not begin with look-ahead, or of which that is only one alternative.

    anchored: it begins at the beginning of the text in any case; else it must say so by `^`.
    """
    at = 1 if pattern.startswith("^") else 0
    if at == 0 and not anchored:
        return None
    conditions = []
    while (is_barred := _OPENINGS.get(pattern[at : at + 3])) is not None:
        end = _closing(pattern, at)
        if end is None:
            return None
        conditions.append((pattern[at + 3 : end], is_barred))
        at = end + 1
        if pattern[at : at + 1] in ("*", "+", "?", "{"):
            return None
    if not conditions or _closing(f"({pattern[at:]})", 0, alternatives=False) is None:
        return None
    return Ahead(tuple(conditions), pattern[at:])


def _closing(pattern: str, start: int, *, alternatives: bool = True) -> int | None:
    """Where the group that opens at `start` closes; None where it does not, or holds `|` of its own unless it may."""
    depth, in_class, at = 0, False, start
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == "|" and depth == 1 and not alternatives:
            return None
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return at
        at += 1
    return None
