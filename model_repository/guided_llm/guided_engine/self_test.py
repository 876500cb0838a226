"""Before the engine serves: tokenizer, compiler and mask engine on a few grammars whose answers are known.

A library that is broken here would fail, or worse mislead, every request.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary

from guided_engine.grammars import GrammarMatcher, Grammars
from guided_engine.tokenizer import Tokenizer

_TEXT = 'hello: {"a": [1, -2.5], "b": "x\\n"}'


class SelfTestError(RuntimeError):
    """A library does not do what it must; the message says which and how."""


@dataclass(frozen=True)
class _Case:
    """A constraint with answers that it must take whole, and texts that it must stop before their end."""

    kind: Kind
    value: Any
    accepted: tuple[str, ...]
    refused: tuple[str, ...]


_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 4}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
_CASES = (
    _Case(Kind.CHOICE, ["yes", "no"], ("yes", "no"), ("y", "yesno", "maybe")),
    _Case(Kind.REGEX, "[0-9]{2}-[a-c]+", ("42-abc",), ("4-abc", "42-d")),
    _Case(Kind.GBNF, 'root ::= "(" root ")" | "x"', ("((x))",), ("((x)", "x)")),
    _Case(Kind.JSON_SCHEMA, {"schema": _SCHEMA}, ('{"name": "Bel", "age": 42}',), ('{"name": "Belinda"', '{"age"')),
)


def prove(grammars: Grammars, tokenizer: Tokenizer) -> None:
    """Raises SelfTestError when texts do not survive the tokenizer, or a mask allows what it must not."""
    pieces = tokenizer.pieces()
    written = b"".join(pieces[i] for i in tokenizer.encode(_TEXT))
    if written.lstrip(b" ") != _TEXT.encode():
        raise SelfTestError(f"tokenizers {_version('tokenizers')} writes {_TEXT!r} as {written!r}")
    speller = Speller(tokenizer.vocabulary)
    for case in _CASES:
        try:
            _prove(case, grammars, speller)
        except SelfTestError:
            raise
        except Exception as error:
            raise SelfTestError(f"{_engine()} fails on {case.kind.value}: {type(error).__name__}: {error}") from error


class Speller:
    """Texts as the longest tokens that fit, whatever the tokenizer would choose."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._ids = {token: i for i, token in enumerate(vocabulary.tokens) if token}
        self._longest = max(map(len, self._ids), default=0)

    def ids(self, text: str) -> list[int]:
        """Raises SelfTestError when no token writes a part of the text."""
        left, found = text.encode(), list[int]()
        while left:
            sizes = range(min(self._longest, len(left)), 0, -1)
            size = next((size for size in sizes if left[:size] in self._ids), 0)
            if not size:
                raise SelfTestError(f"the vocabulary has no token for {left[:1]!r}")
            found.append(self._ids[left[:size]])
            left = left[size:]
        return found


def _prove(case: _Case, grammars: Grammars, speller: Speller) -> None:
    texts = [(text, True) for text in case.accepted] + [(text, False) for text in case.refused]
    constrained = grammars.matchers(GrammarSpec(case.kind, case.value).to_json(), len(texts))
    matchers = () if constrained is None else constrained.matchers
    for (text, expected), matcher in zip(texts, matchers, strict=True):
        taken = all(_takes(matcher, i) for i in (*speller.ids(text), speller.vocabulary.stop_ids[0]))
        if taken is not expected:
            verb = "takes" if taken else "does not take"
            raise SelfTestError(f"{_engine()} {verb} {text!r} under {case.kind.value} {case.value!r}")


def _takes(matcher: GrammarMatcher, token_id: int) -> bool:
    """Whether the token is legal."""
    legal = matcher.allows(token_id)
    if matcher.accept(token_id) is not legal:
        raise SelfTestError(f"{_engine()}: mask and matcher disagree about token {token_id}")
    return legal


def _engine() -> str:
    return f"xgrammar {_version('xgrammar')}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
