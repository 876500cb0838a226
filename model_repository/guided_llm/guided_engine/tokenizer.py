"""The model's tokenizer: text to ids, and the bytes of every id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from guided_grammar.vocabulary import Vocabulary

# Formats name few sets of markers; a client may name any.
_KEPT_VIEWS = 8


class Tokenizer:
    """Thread-safe for encoding.

    vocabulary: what grammars may write.
    drops_space: texts of this tokenizer begin with a space that decoding leaves out.
    """

    def __init__(self, tokenizer: Any, vocab_size: int, stop_ids: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self.vocabulary = Vocabulary.from_tokenizer(tokenizer, vocab_size, stop_ids)
        self._shown = {token.content for token in tokenizer.added_tokens_decoder.values() if not token.special}
        self._view = lru_cache(_KEPT_VIEWS)(self.vocabulary.with_markers)
        self.drops_space = _drops_space(json.loads(tokenizer.backend_tokenizer.to_str())["decoder"])

    def pieces(self, markers: frozenset[str] = frozenset()) -> tuple[bytes, ...]:
        """What an answer shows, bytes of every id: as the vocabulary, added tokens that are not control tokens by their
        text, and of the control tokens only the named ones (a tool format's)."""
        return self._view(frozenset((self._shown | markers) & self.vocabulary.markup.keys()))

    def encode(self, text: str) -> list[int]:
        """Ids of a prompt; the beginning-of-text token is added unless the text (a rendered template) brings it."""
        begins = self._tokenizer.bos_token
        special = not (begins and text.startswith(begins))
        return list(self._tokenizer.encode(text, add_special_tokens=special))


def _drops_space(decoder: dict[str, Any] | None) -> bool:
    if decoder is None:
        return False
    if decoder["type"] == "Sequence":
        return any(_drops_space(part) for part in decoder["decoders"])
    if decoder["type"] == "Strip":
        return bool(decoder["start"] > 0 and decoder["content"] == " ")
    return bool(decoder["type"] == "Metaspace" and decoder.get("prepend_scheme") in ("always", "first"))
