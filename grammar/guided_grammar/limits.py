"""Every limit on a constraint, with its default. Configurable per deployment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes are UTF-8 bytes of the text as received; counts are plain numbers; acceptance ids in brackets."""

    regex_bytes: int = 4096  # P8
    grammar_bytes: int = 16_384  # P9
    schema_bytes: int = 16_384  # P10, P11
    choice_count: int = 4096
    choice_bytes: int = 65_536
    json_depth: int = 64
    tool_count: int = 128
    automaton_bytes: int = 262_144  # P14: working memory of one regex's automaton
    pattern_automaton_bytes: int = 4_194_304  # the same for a pattern or format inside a JSON schema
    emitted_bytes: int = 262_144  # P15: the grammar text a constraint may expand to
    steps: int = 2_000_000  # counted compile steps over all automata and schema nodes
    number_digits: int = 16  # D146: significant digits an otherwise unbounded number may be written with
    whitespace: int = 8  # F54: blanks before the document
    repeat: int = 65_536  # the largest bound of a repetition in a regex or GBNF
    forced_characters: int = 262_144  # text that a grammar may leave no choice about, in one go


DEFAULT_LIMITS = Limits()
