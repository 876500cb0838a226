"""xgrammar over a byte vocabulary: whether a grammar accepts a text."""

from __future__ import annotations

from functools import cache

import xgrammar as xgr
from guided_grammar.watch.marks import watches

from guided_testing.byte_tokenizer import accepts

EOS = 256


@cache
def _compiler() -> xgr.GrammarCompiler:
    vocabulary = [bytes([i]) for i in range(256)] + [b"</s>"]
    info = xgr.TokenizerInfo(vocabulary, vocab_type=xgr.VocabType.RAW, stop_token_ids=[EOS])
    return xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=True)


class Matcher:
    """A compiled EBNF grammar, asked about whole texts. Lone surrogates are passed as their three-byte encoding.

    A grammar with marks is asked through its session, which alone can tell whether items differ.
    """

    def __init__(self, ebnf: str) -> None:
        self._watched = ebnf if watches(ebnf) else None
        self._matcher = xgr.GrammarMatcher(_compiler().compile_grammar(xgr.Grammar.from_ebnf(ebnf)))

    def accepts(self, value: str) -> bool:
        if self._watched is not None:
            return accepts(self._watched, value)
        self._matcher.reset()
        # Not by accepting the stop token: xgrammar takes it for its text where the grammar allows that text.
        tokens = value.encode("utf-8", "surrogatepass")
        return all(self._matcher.accept_token(token) for token in tokens) and self._matcher.is_completed()
