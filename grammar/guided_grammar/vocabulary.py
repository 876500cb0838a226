"""What each token id writes, in bytes: the view of a tokenizer that masks are made from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_MARKUP = re.compile(r"\s*[<\[◁].*[>\]▷]\s*", re.DOTALL)
_METASPACE = "\N{LOWER ONE EIGHTH BLOCK}"


@dataclass(frozen=True)
class Vocabulary:
    """Bytes of every token id of one model.

    tokens: `vocab_size` entries (the width of the model's logits); b"" for an id that never writes text: special
        tokens, added markup such as `<tool_call>`, padding of the embedding, and ids whose bytes are not known.
    stop_ids: ids that end an answer; never text. At least one, each below `vocab_size`.
    markup: blanked added tokens by their text, so that a grammar may name them (`MaskEngine.compile(markers=)`).
    """

    tokens: tuple[bytes, ...]
    stop_ids: tuple[int, ...]
    markup: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.stop_ids:
            raise ValueError("a vocabulary needs at least one stop id")
        outside = [i for i in self.stop_ids if not 0 <= i < len(self.tokens)]
        if outside:
            raise ValueError(f"stop id {outside[0]} is outside the vocabulary of {len(self.tokens)}")

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    def with_markers(self, markers: Iterable[str]) -> tuple[bytes, ...]:
        """`tokens` with the named markup readable as its own text; unknown markers are plain text already."""
        tokens = list(self.tokens)
        for marker, token_id in self.ids_of(markers).items():
            tokens[token_id] = marker.encode()
        return tuple(tokens)

    def ids_of(self, markers: Iterable[str]) -> dict[str, int]:
        """Those of `markers` that are one token and no stop."""
        known = {marker: self.markup[marker] for marker in markers if marker in self.markup}
        return {marker: token_id for marker, token_id in known.items() if token_id not in self.stop_ids}

    @staticmethod
    def of_bytes() -> Vocabulary:
        """Ids 0 to 255 are the bytes, 256 is the stop."""
        return Vocabulary((*(bytes([byte]) for byte in range(256)), b""), (256,))

    @staticmethod
    def from_tokenizer(tokenizer: Any, vocab_size: int | None = None, stop_ids: Iterable[int] = ()) -> Vocabulary:
        """Read a fast transformers tokenizer or a `tokenizers.Tokenizer`.

        vocab_size: width of the model's logits, None for the tokenizer's own length.
        stop_ids: every id that the model's generation config ends on; the tokenizer's EOS is added to them.
        Raises ValueError for a tokenizer whose token bytes cannot be told.
        """
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        description = json.loads(backend.to_str())
        vocab: dict[str, int] = backend.get_vocab(with_added_tokens=True)
        size = vocab_size if vocab_size is not None else max(vocab.values()) + 1
        eos = getattr(tokenizer, "eos_token_id", None)
        stops = dict.fromkeys([*([] if eos is None else [eos]), *stop_ids])
        decode = _decoder(description)
        tokens = [b""] * size
        for text, token_id in vocab.items():
            if token_id < size:
                tokens[token_id] = decode(text)
        markup = {}
        for added in description.get("added_tokens", ()):
            text, token_id = added["content"], added["id"]
            if token_id >= size:
                continue
            hidden = added["special"] or _MARKUP.fullmatch(text)
            tokens[token_id] = b"" if hidden else text.encode()
            if hidden:
                markup[text] = token_id
        for token_id in (*stops, vocab.get(description["model"].get("unk_token") or "", -1)):
            if 0 <= token_id < size:
                tokens[token_id] = b""
        return Vocabulary(tuple(tokens), tuple(stops), markup)


def _decoder(description: dict[str, Any]) -> Any:
    """Vocabulary entry -> bytes, by the kind of decoder that the tokenizer declares."""
    kinds = set(_types(description.get("decoder"))) | set(_types(description.get("pre_tokenizer")))
    if "ByteLevel" in kinds:
        table = _byte_level_table()
        return lambda text: bytes(table[c] for c in text) if all(c in table for c in text) else b""
    if description["model"].get("byte_fallback") or kinds & {"ByteFallback", "Metaspace"}:
        return _decode_sentencepiece
    raise ValueError(f"cannot tell the bytes of tokens of a {description['model'].get('type')} tokenizer")


def _types(part: Any) -> Iterable[str]:
    """The `type` of a decoder or pre-tokenizer and of all its parts."""
    if isinstance(part, dict):
        yield str(part.get("type"))
        for key in ("decoders", "pretokenizers"):
            for inner in part.get(key, ()):
                yield from _types(inner)


def _decode_sentencepiece(text: str) -> bytes:
    match = _BYTE_TOKEN.fullmatch(text)
    return bytes([int(match[1], 16)]) if match else text.replace(_METASPACE, " ").encode("utf-8", "replace")


def _byte_level_table() -> dict[str, int]:
    """The byte <-> printable character table of byte-level BPE: printable Latin-1 stands for itself."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(others)}
