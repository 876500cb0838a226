"""Sizes of schemas as the client wrote them, blanks included: what the limit on schema bytes counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from guided_grammar.errors import LimitExceeded

from guided_frontend.errors import of_grammar

_SCHEMAS = (("guided_json",), ("structured_outputs", "json"), ("response_format", "json_schema", "schema"))
_BLANKS = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def check_schemas(raw: bytes, limit: int) -> None:
    """Raises BadRequest when a schema in the JSON object `raw` is longer than `limit` bytes."""
    if len(raw) <= limit:
        return
    text = raw.decode("utf-8").strip()
    for path in _SCHEMAS:
        schema = _member(text, path)
        size = 0 if schema is None else len(schema.encode())
        if size > limit:
            raise of_grammar(LimitExceeded("schema bytes", limit, size, keyword=".".join(path)), path[0])


def _member(text: str, path: Sequence[str]) -> str | None:
    """The text of the value at `path`; of a value that is a string, what the string says."""
    for key in path:
        if not text.startswith("{"):
            return None
        found = [value for name, value in _members(text) if name == key]
        if not found:
            return None
        text = found[-1]
    return json.loads(text) if text.startswith('"') else text


def _members(text: str) -> Iterator[tuple[str, str]]:
    """Keys and the texts of their values of an object that is known to be JSON."""
    at = _skip(text, text.index("{") + 1)
    while text[at] == '"':
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield key, text[start:end]
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None
    return match.end()
