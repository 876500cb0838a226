"""The naive repair of a cut JSON document, published in full because its output must never be used.

It closes an open string, drops dangling commas, colons and keys without a value, walks back over a literal that was
cut, and closes brackets. What comes out parses more often than not, validates, and is not what was being written.
"""

from __future__ import annotations

import json
import re

_DANGLING = re.compile(r'(,|[{,]?\s*"(?:[^"\\]|\\.)*"\s*:)\s*$')
_LITERAL = re.compile(r"[\w+.-]+$")


def repair(text: str) -> str | None:
    """A document that parses, made from the prefix `text`, or None when there is none to be had."""
    while text:
        closed = _closed(text)
        if _parses(closed):
            return closed
        shorter = _shorter(text)
        if shorter == text:
            return None
        text = shorter
    return None


def _closed(text: str) -> str:
    """Open strings and brackets closed, nothing dropped."""
    stack, in_string, escaped = [], False, False
    for character in text:
        if in_string:
            escaped, in_string = (not escaped and character == "\\"), escaped or character != '"'
        elif character == '"':
            in_string = True
        elif character in "{[":
            stack.append("}" if character == "{" else "]")
        elif character in "}]" and stack:
            stack.pop()
    body = (text[:-1] if escaped else text) + ('"' if in_string else "")
    return body + "".join(reversed(stack))


def _shorter(text: str) -> str:
    """One dangling comma, key or cut literal less; failing that one character less."""
    trimmed = text.rstrip()
    for pattern in (_DANGLING, _LITERAL):
        found = pattern.search(trimmed)
        if found:
            kept = trimmed[: found.start()]
            return kept + "{" if found.group().startswith("{") else kept
    return trimmed[:-1]


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
