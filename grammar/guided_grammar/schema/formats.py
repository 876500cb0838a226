"""String formats of JSON Schema as regular languages."""

from __future__ import annotations

from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.errors import UnsupportedConstraint

_LANGUAGES: dict[str, str] = {}

KNOWN_FORMATS = frozenset(
    {
        "date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6",
        "uri", "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "json-pointer",
        "relative-json-pointer", "regex",
    }
)  # fmt: skip
"""Formats that the specification defines; any other name is an annotation."""


def language(name: str, budget: Budget, path: str = "") -> Dfa:
    """The strings of a known format. Raises UnsupportedConstraint for one that is not enforced."""
    raise UnsupportedConstraint(f"format {name!r} is not supported", keyword="format", path=path)
