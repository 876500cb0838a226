from __future__ import annotations

import pytest
from guided_frontend.calls.literal import json_of
from guided_frontend.calls.typed import typed
from guided_grammar.formats import STRING_MARK


@pytest.mark.parametrize(
    ("text", "json"),
    [
        ("1", "1"), (" -1.5e3 ", "-1.5e3"), ("1_000", "1000"), ("0x1F", "31"), (".5", "0.5"), ("1e400", "1e400"),
        ("float", None), ("inf", None), ("nan", None), ("True", "true"), ("none", "null"), ("NULL", "null"),
        ('"a\\"b"', '"a\\"b"'), ("'it\\'s'", '"it\'s"'), ("'''a'b'''", '"a\'b"'), ('"\\u00e9\\x41\\n"', '"éA\\n"'),
        ('"\\ud83d\\ude00"', '"😀"'), ("'\\d'", '"\\\\d"'), ("[1, 'a', (2,)]", '[1, "a", [2]]'), ("{'a': [True], }", '{"a": [true]}'),
        ("{a: 1}", '{"a": 1}'), ("[1", None), ("[1 2]", None), ("'a", None), ("1 2", None), ("", None), ("{'a' 1}", None),
        ("[" * 100_000, None),
    ],
)  # fmt: skip
def test_values_of_python_and_json_become_json(text: str, json: str | None) -> None:
    assert json_of(text) == json


@pytest.mark.parametrize(
    ("text", "json"),
    [
        ('<|"|>a "b" \\n<|"|>', '"a \\"b\\" \\\\n"'),
        ('{Some key:[<|"|>x<|"|>,2],on:true}', '{"Some key": ["x", 2], "on": true}'),
        ("word", '"word"'),
        ('<|"|>open', None),
    ],
)
def test_values_of_gemma_become_json(text: str, json: str | None) -> None:
    assert json_of(text, (STRING_MARK,), bare=True) == json


PARAMETERS = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "either": {"type": ["string", "integer", "null"]},
        "listed": {"enum": ["a", "b"]},
        "pointed": {"$ref": "#/$defs/text"},
        "any_of": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/text"}]},
        "all_of": {"allOf": [{"type": ["string", "number"]}, {"type": "number"}]},
    },
    "$defs": {"text": {"type": "string"}},
}


@pytest.mark.parametrize(
    ("argument", "text", "json"),
    [
        ("text", "5", '"5"'), ("text", '"quoted"', '"\\"quoted\\""'), ("text", "", '""'), ("count", "5", "5"),
        ("count", "five", '"five"'), ("either", "5", "5"), ("either", "5 euros", '"5 euros"'), ("either", "null", "null"),
        ("listed", "true", '"true"'), ("pointed", "true", '"true"'), ("any_of", "True", "true"), ("any_of", "yes", '"yes"'),
        ("all_of", "-2.5", "-2.5"), ("undeclared", "[1, 2]", "[1, 2]"), ("undeclared", "[sic]", '"[sic]"'),
    ],
)  # fmt: skip
def test_untyped_texts_are_read_as_the_schema_wants_them(argument: str, text: str, json: str) -> None:
    assert typed(text, PARAMETERS, argument) == json
