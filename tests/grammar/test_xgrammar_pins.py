"""Faults and habits of xgrammar 0.2.9 that this package works around. An upgrade that changes one fails here:
then the workaround named in the test's docstring may go, or has to change."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
import xgrammar

EOS = 256
TOKENS = [bytes([b]) for b in range(256)] + [b"</s>", b"<|im_start|>", b"}}"]


@pytest.fixture(scope="module")
def compiler() -> xgrammar.GrammarCompiler:
    info = xgrammar.TokenizerInfo(TOKENS, xgrammar.VocabType.RAW, stop_token_ids=[EOS])
    return xgrammar.GrammarCompiler(info, max_threads=1)


def mask(matcher: xgrammar.GrammarMatcher) -> set[int]:
    bits = np.zeros((1, -(-len(TOKENS) // 32)), np.int32)
    matcher.fill_next_token_bitmask(bits, 0)
    return set(np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist())


def accepts(compiled: xgrammar.CompiledGrammar, text: str | bytes) -> bool:
    matcher = xgrammar.GrammarMatcher(compiled)
    return bool(matcher.accept_string(text)) and bool(matcher.is_completed())


def test_the_version_is_the_one_these_pins_describe() -> None:
    assert version("xgrammar") == "0.2.9"


@pytest.mark.parametrize(
    ("schema", "invalid"),
    [
        ({"type": "integer", "not": {"const": 3}}, "3"),
        ({"type": "array", "uniqueItems": True, "items": {"type": "integer"}}, "[1, 1]"),
        ({"type": "object", "required": ["a"], "anyOf": [{"type": "object"}, {"type": "null"}]}, "{}"),
        ({"allOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 5}]}, "6"),
        ({"minimum": 5}, "1"),
        ({"type": "array", "items": {}, "contains": {"type": "integer"}}, "[]"),
        ({"type": "string", "pattern": "^(a+b)?$"}, '"a"'),
        ({"type": "string", "maxLength": 4}, '"\x01"'),
        ({"type": "string", "pattern": '^"x"$'}, '""x""'),
        ({"type": "number", "multipleOf": 0.5}, "1.3"),
    ],
    ids=json.dumps,
)
def test_its_schema_converter_accepts_invalid_instances(
    compiler: xgrammar.GrammarCompiler, schema: dict[str, Any], invalid: str
) -> None:
    """Why `guided_grammar.schema` exists."""
    assert accepts(compiler.compile_json_schema(json.dumps(schema), strict_mode=False), invalid)


def test_special_tokens_are_text(compiler: xgrammar.GrammarCompiler) -> None:
    """Why `Vocabulary` blanks them."""
    matcher = xgrammar.GrammarMatcher(compiler.compile_grammar('root ::= "\\"" [^"]* "\\""'))
    matcher.accept_string('"')
    assert 257 in mask(matcher)


def test_the_mask_of_a_self_recursive_root_is_too_tight(compiler: xgrammar.GrammarCompiler) -> None:
    """Why `emit` wraps the root."""
    direct = xgrammar.GrammarMatcher(compiler.compile_grammar('root ::= "{" root? "}"'))
    wrapped = xgrammar.GrammarMatcher(compiler.compile_grammar('root ::= r\nr ::= "{" r? "}"'))
    for matcher in (direct, wrapped):
        matcher.accept_string("{{")
    assert 258 not in mask(direct) and direct.fork().accept_token(258)
    assert 258 in mask(wrapped)


@pytest.mark.parametrize("grammar", ["root ::= root", 'root ::= root "a"'])
def test_a_mask_can_be_all_zero(compiler: xgrammar.GrammarCompiler, grammar: str) -> None:
    """Why `batch.fill` reports failed rows."""
    assert mask(xgrammar.GrammarMatcher(compiler.compile_grammar(grammar))) == set()


@pytest.mark.parametrize(
    "grammar", ['root ::= | "a"', "root ::= .", 'root ::= "a"{,2}', r'root ::= "\["', "root ::= [a]**"]
)
def test_its_ebnf_is_not_gbnf(compiler: xgrammar.GrammarCompiler, grammar: str) -> None:
    """Why `gbnf_parse` reads the dialect itself."""
    with pytest.raises(RuntimeError):
        compiler.compile_grammar(grammar)


def test_a_two_digit_escape_swallows_more_digits(compiler: xgrammar.GrammarCompiler) -> None:
    """Why `emit` writes four or eight digits."""
    compiled = compiler.compile_grammar(r"root ::= [\x5cbf]")
    assert not accepts(compiled, "b") and accepts(compiled, "\u5cbf")


def test_free_text_sets_bits_past_the_vocabulary(compiler: xgrammar.GrammarCompiler) -> None:
    """Why `Session.fill` clears them."""
    compiled = compiler.compile_grammar('root ::= TagDispatch(("<t>", r), loop_after_dispatch=true)\nr ::= "x"')
    assert max(mask(xgrammar.GrammarMatcher(compiled))) >= len(TOKENS)


def test_filling_a_terminated_row_raises(compiler: xgrammar.GrammarCompiler) -> None:
    """Why `batch.fill` asks first and fills rows one by one."""
    matcher = xgrammar.GrammarMatcher(compiler.compile_grammar('root ::= "a"'))
    matcher.accept_string("a")
    assert matcher.accept_token(EOS)
    with pytest.raises(RuntimeError):
        mask(matcher)


def test_an_id_past_32_bits_wraps(compiler: xgrammar.GrammarCompiler) -> None:
    """Why `Session.accept` checks the range."""
    matcher = xgrammar.GrammarMatcher(compiler.compile_grammar('root ::= "a"'))
    assert matcher.accept_token(2**32 + ord("a"))
