"""Messages to prompt token ids: the chat template in a sandbox, and tokenisation that user text cannot escape from.

Every text of the request is rendered with the first characters of all markup tokens replaced by stand-ins, so after
rendering a markup token that is spelled in full was written by the template. Where the request's own text spells one
(`<|im_end|>`, `<tool_call>`), that stretch is encoded without markup tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment
from tokenizers import Tokenizer

from guided_frontend.errors import BadRequest

# Unicode noncharacters: never part of interchanged text, so the template cannot hold one.
_STAND_INS = [chr(c) for c in range(0xFDD0, 0xFDF0)]
_MARKUP = re.compile(r"\s*[<\[].*[>\]]\s*", re.DOTALL)


class ChatTemplate:
    """A Jinja chat template with the names that model repositories rely on. Rendering is deterministic.

    variables: the names that it reads from outside.
    """

    def __init__(self, source: str) -> None:
        # Not the immutable one: templates of published models append to lists, and all values here are copies.
        environment = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
        environment.filters["tojson"] = _to_json
        environment.globals.update(raise_exception=_raise, strftime_now=_now)
        self._template = environment.from_string(source)
        self.variables = frozenset(meta.find_undeclared_variables(environment.parse(source)))

    def render(self, **variables: Any) -> str:
        """Raises BadRequest with the template's own words when it refuses the messages."""
        try:
            return self._template.render(**variables)
        except (jinja2.TemplateError, TypeError) as error:
            raise BadRequest(f"the chat template refuses these messages: {error}", "messages") from None


class _Generation(Extension):
    """`{% generation %}` marks the assistant's text for training; for a prompt it is transparent."""

    tags = {"generation"}  # noqa: RUF012 (jinja2 declares it so)

    def parse(self, parser: Parser) -> Node | list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _now(pattern: str) -> str:
    return datetime.now().strftime(pattern)


@dataclass(frozen=True)
class _Shield:
    """One-to-one stand-ins for the first characters of markup tokens."""

    table: Mapping[int, str]
    back: Mapping[int, str]

    def over(self, value: Any) -> Any:
        """`value` with every string in it shielded, dict keys included."""
        if isinstance(value, str):
            return value.translate(self.table)
        if isinstance(value, list):
            return [self.over(item) for item in value]
        if isinstance(value, dict):
            return {self.over(key): self.over(item) for key, item in value.items()}
        return value


class PromptTokenizer:
    """The model's tokenizer, from `<folder>/tokenizer.json`. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        source = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        self._full = Tokenizer.from_str(json.dumps(source))
        markup = [t["content"] for t in source["added_tokens"] if t["special"] or _MARKUP.fullmatch(t["content"])]
        added = source["added_tokens"]
        source["added_tokens"] = [t for t in source["added_tokens"] if t["content"] not in markup]
        self._plain = Tokenizer.from_str(json.dumps(source))
        self._firsts = sorted({content[0] for content in markup})
        longest_first = sorted(markup, key=len, reverse=True)
        self._markup = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._added = {token["content"]: token["id"] for token in added}
        self._control = sorted(token["content"] for token in added if token["special"])
        self.size = self._full.get_vocab_size()

    def encode_text(self, text: str) -> list[int]:
        """Ids of a prompt whose author writes the markup (`/v1/completions`)."""
        return list(self._full.encode(text).ids)

    def encode_plain(self, text: str) -> list[int]:
        """Ids of text in which nothing is markup."""
        return list(self._plain.encode(text, add_special_tokens=False).ids)

    def encode_markup(self, text: str) -> list[int]:
        """Ids of text that we write ourselves, markup tokens included."""
        return list(self._full.encode(text, add_special_tokens=False).ids)

    def token_id(self, text: str) -> int | None:
        """The id of the one added token with that text, None where the text is no token of its own."""
        return self._added.get(text)

    def control_tokens(self, markup: Iterable[str]) -> tuple[str, ...]:
        """The control tokens that these texts hold: what the engine leaves out of text unless told."""
        texts = tuple(markup)
        return tuple(token for token in self._control if any(token in text for text in texts))

    def first_token(self, text: str) -> int | None:
        """The id of the longest added token that `text` begins with, None for none."""
        begun = [token for token in self._added if text.startswith(token)]
        return self._added[max(begun, key=len)] if begun else None

    def ends_with(self, ids: Sequence[int], text: str) -> bool:
        """Whether the prompt's text, blanks at its end aside, ends with `text`."""
        return bool(self._full.decode(ids[-64:], skip_special_tokens=False).rstrip().endswith(text))

    def encode_chat(self, template: ChatTemplate, trusted: Mapping[str, Any], user: Mapping[str, Any]) -> list[int]:
        """Ids of the rendered prompt; no text below `user` becomes a markup token. Raises BadRequest."""
        shield = self._shield(user)
        rendered = template.render(**trusted, **shield.over(dict(user)))
        text = rendered.translate(dict(shield.back))
        ours = [match.span() for match in self._markup.finditer(rendered)]
        if ours == [match.span() for match in self._markup.finditer(text)]:
            return list(self._full.encode(text, add_special_tokens=False).ids)
        return self._pieces(text, ours)

    def _pieces(self, text: str, markup: Sequence[tuple[int, int]]) -> list[int]:
        ids: list[int] = []
        end = 0
        for start, stop in markup:
            ids += self.encode_plain(text[end:start])
            ids += self._full.encode(text[start:stop], add_special_tokens=False).ids
            end = stop
        return ids + self.encode_plain(text[end:])

    def _shield(self, user: Mapping[str, Any]) -> _Shield:
        used = {char for text in _texts(dict(user)) for char in text if "\ufdd0" <= char <= "\ufdef"}
        free = [char for char in _STAND_INS if char not in used]
        if len(free) < len(self._firsts):
            raise BadRequest("the messages hold too many different Unicode noncharacters", "messages")
        pairs = list(zip(self._firsts, free, strict=False))
        return _Shield({ord(a): b for a, b in pairs}, {ord(b): a for a, b in pairs})

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids, markup included. Raises BadRequest for an id outside the vocabulary."""
        if any(not 0 <= i < self.size for i in ids):
            raise BadRequest(f"token ids must lie from 0 to {self.size - 1}", "tokens")
        return str(self._full.decode(list(ids), skip_special_tokens=False))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
