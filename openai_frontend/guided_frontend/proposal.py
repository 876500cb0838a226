"""Whether our chat template can stand in for a model's own."""

from __future__ import annotations

from guided_grammar.formats import CONTENT_ONLY, proposed

_CHATML = "<|im_start|>"


def takes_ours(template: str) -> bool:
    """Whether it is ChatML that shows no tools, in whose place our template with Hermes calls can stand."""
    shows = any(word in template for word in ("tools", "enable_thinking"))
    return _CHATML in template and not shows and proposed(template) == CONTENT_ONLY.name
