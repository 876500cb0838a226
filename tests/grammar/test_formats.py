"""String formats: the corpus of valid and invalid values, and what their negations may hold."""

from __future__ import annotations

import json
import random
from pathlib import Path

import jsonschema_rs
import pytest
from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.emit import to_ebnf
from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.ir import Rules
from guided_grammar.schema.formats import KNOWN_FORMATS, language
from guided_grammar.schema.strings import Strings
from guided_testing.ebnf import Matcher

CORPUS = Path(__file__).parents[3] / "shared/data/formats/formats.jsonl"
UNSUPPORTED = {"idn-hostname"}
SUPPORTED = sorted(KNOWN_FORMATS - UNSUPPORTED)

LEFT_OUT = {
    "hostname": lambda value: "xn--" in value.lower(),
    "idn-email": lambda value: "\u0301" in value.partition("@")[2],
    "regex": lambda value: "(?<" in value,
}
"""Valid values that are never generated: labels in punycode or with combining marks, named groups and look-behind."""


def corpus(name: str) -> dict[str, list[str]]:
    if not CORPUS.exists():
        pytest.skip("corpus not present")
    rows = [json.loads(line) for line in CORPUS.read_text().split("\n") if line]
    return next((row for row in rows if row["format"] == name), {"valid": [], "invalid": []})


def emitted(strings: Strings) -> Matcher:
    rules = Rules()
    return Matcher(to_ebnf(rules, strings.emit(rules, Budget())))


@pytest.mark.corpus
@pytest.mark.parametrize("name", SUPPORTED)
def test_no_invalid_value_is_allowed_and_every_valid_one_is(name: str) -> None:
    row = corpus(name)
    strings = Strings.format(name, Budget())
    matcher = emitted(strings)
    left_out = LEFT_OUT.get(name, lambda value: False)
    expected = {value: not left_out(value) for value in row["valid"]} | dict.fromkeys(row["invalid"], False)
    assert {value: strings.contains(value) for value in expected} == expected
    assert {value: matcher.accepts(json.dumps(value, ensure_ascii=False)) for value in expected} == expected


@pytest.mark.corpus
@pytest.mark.parametrize("name", SUPPORTED)
def test_a_negated_format_allows_no_valid_value(name: str) -> None:
    row = corpus(name)
    negated = Strings.format(name, Budget()).complement(Budget())
    assert [value for value in row["valid"] if negated.contains(value)] == []


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_a_format_that_is_not_enforced_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedConstraint) as caught:
        Strings.format(name, Budget(), "/items")
    assert (caught.value.keyword, caught.value.path) == ("format", "/items")


@pytest.mark.parametrize(
    ("value", "is_regex"),
    [
        ("^[a-zA-Z0-9_]{3,16}$", True),
        ("a{10,9}", False),
        ("a{2,1}", False),
        ("a{5,5}b{9,10}c{12,25}d{99,100}e{0,}", True),
        ("a{,2}", False),
        ("a+?b??c{1,2}?", True),
        ("a???", False),
        (r"[\w.-]+[-a][^-][a\-z]", True),
        ("[z-a]", False),
        (r"^\d{3}-\d{4}$", True),
    ],
)
def test_quantifiers_and_classes_of_a_regex_are_in_order(value: str, is_regex: bool) -> None:
    assert Strings.format("regex", Budget()).contains(value) == is_regex


def sampled(dfa: Dfa, high: int | None, rng: random.Random) -> str:
    """A text of the language that goes on with most probability up to a length drawn at first."""
    wanted = rng.choice((3, 10, 40, 100, 200))
    while True:
        state, characters = 0, ""
        while dfa.edges[state] and (not dfa.accepting[state] or rng.random() > 1 / (2 + wanted - len(characters))):
            ranges, state = rng.choice(dfa.edges[state])
            low, last = rng.choice(ranges)
            characters += chr(rng.choice((low, last, rng.randint(low, last))))
            wanted = max(wanted, len(characters))
        if high is None or len(characters) <= high:
            return characters


@pytest.mark.parametrize("name", SUPPORTED)
def test_what_is_written_is_valid_to_a_validator_that_asserts_formats(name: str) -> None:
    found, rng = language(name), random.Random(name)
    is_valid = jsonschema_rs.validator_for({"format": name}, validate_formats=True).is_valid
    values = [sampled(found.dfa, found.high, rng) for _ in range(600)]
    assert [value for value in values if not is_valid(value)] == []
    matcher = emitted(Strings.format(name, Budget()))
    accepted = [v for v in values if matcher.accepts(json.dumps(v, ensure_ascii=False))]
    assert len(accepted) > 50


@pytest.mark.parametrize(
    ("name", "value", "is_written"),
    [
        ("email", "a" * 64 + "@b", True),
        ("email", "a" * 65 + "@b", False),
        ("email", "a.bcd@" + "b" * 63 + ".co", True),
        ("email", "a@" + "b" * 64 + ".co", False),
        ("email", '"' + "a" * 62 + '"@b', True),
        ("email", '"' + "a" * 63 + '"@b', False),
        ("email", "a@xn--a", False),
        ("email", "a.xn--b@c-d.e", True),
        ("idn-email", "\u00e9" * 16 + "@b", True),
        ("idn-email", "\u00e9" * 65 + "@b", False),
        ("idn-email", "a@" + "\uac00" * 10 + ".kr", True),
        ("idn-email", "a@" + "\uac00" * 40, False),
        ("hostname", "ab--cd.e", False),
        ("hostname", "a--cd.efg--h", True),
    ],
)
def test_the_lengths_of_an_address_and_reserved_labels(name: str, value: str, is_written: bool) -> None:
    strings = Strings.format(name, Budget())
    assert strings.contains(value) is is_written
    assert emitted(strings).accepts(json.dumps(value, ensure_ascii=False)) is is_written


def test_a_host_name_is_bounded_as_a_whole() -> None:
    strings = Strings.format("hostname", Budget())
    assert strings.contains("a." * 126 + "a") and not strings.contains("a." * 127 + "a")


def test_formats_combine_with_other_constraints() -> None:
    budget = Budget()
    short = Strings.format("email", budget).intersect(Strings.length(0, 12), budget)
    matcher = emitted(short)
    assert matcher.accepts('"ab@cd.efghi"') and not matcher.accepts('"ab@cd.efghijk"')
    work = Strings.format("uri", budget).intersect(Strings.pattern("^https://", budget), budget)
    matcher = emitted(work)
    assert matcher.accepts('"https://a.b/c?d"') and not matcher.accepts('"http://a.b"')
