from __future__ import annotations

import json
from typing import Any

import pytest
from guided_frontend.errors import BadRequest
from guided_frontend.received import check_schemas

LIMIT = 64


def padded(size: int) -> str:
    """A schema whose text has that many bytes, most of them blanks."""
    return '{"const":"é"' + " " * (size - len('{"const":"é"}'.encode())) + "}"


PLACES = [
    ("guided_json", '{"messages": [1, {"guided_json": 2}], "guided_json" : %s , "n": 1}'),
    ("guided_json", '\n{"guided_json":%s}\n'),
    ("structured_outputs", '{"structured_outputs": {"regex": null, "json":%s}}'),
    ("response_format", '{"a": "%s{", "response_format": {"type": "x", "json_schema": {"name": "}", "schema": %s}}}'),
]


@pytest.mark.parametrize(("param", "body"), PLACES)
@pytest.mark.parametrize(("size", "fits"), [(LIMIT, True), (LIMIT + 1, False)])
def test_p10_p11_a_schema_counts_as_it_was_received(param: str, body: str, size: int, fits: bool) -> None:
    text = body.replace("%s{", 'quoted \\"{').replace("%s", padded(size))
    assert len(text) > LIMIT and json.loads(text)
    if fits:
        check_schemas(text.encode(), LIMIT)
        return
    with pytest.raises(BadRequest, match=f"limit is {LIMIT}, got {size}") as refused:
        check_schemas(text.encode(), LIMIT)
    assert refused.value.param == param


@pytest.mark.parametrize(
    "body",
    [{}, {"guided_json": None}, {"response_format": "x" * LIMIT}, {"response_format": {"json_schema": 3}}, {"user": "x" * 99}],
)  # fmt: skip
def test_bodies_without_a_long_schema_pass(body: dict[str, Any]) -> None:
    check_schemas(json.dumps({"pad": "x" * LIMIT, **body}).encode(), LIMIT)


def test_a_schema_in_a_string_counts_as_what_the_string_says() -> None:
    check_schemas(json.dumps({"guided_json": padded(LIMIT), "pad": "x"}).encode(), LIMIT)
    with pytest.raises(BadRequest):
        check_schemas(json.dumps({"guided_json": padded(LIMIT + 1)}).encode(), LIMIT)
