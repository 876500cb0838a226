"""Endpoints that never ask the engine: tokenisation, and whether a constraint would be enforced."""

from __future__ import annotations

from functools import partial
from typing import Any

from guided_grammar.spec import Kind

from guided_frontend import chat, constraint, served, translate
from guided_frontend.errors import BadRequest
from guided_frontend.schemas import CheckRequest, DetokenizeRequest, TokenizeRequest
from guided_frontend.service import Service

_STOP = 1


async def tokenize(service: Service, body: TokenizeRequest) -> dict[str, Any]:
    """Ids of a prompt, or of the messages as the chat template writes them. Raises ApiError."""
    model = served.find(service.models, body.model)
    if (body.prompt is None) == (body.messages is None):
        raise BadRequest("give exactly one of prompt and messages", "prompt")
    if body.messages is None:
        ids = await service.off_loop(partial(model.tokenizer.encode_text, body.prompt or ""))
    else:
        conversation = body.as_chat()
        ids = await service.off_loop(
            partial(chat.encode, conversation, translate.plan_chat(conversation, model), model)
        )
    return {"count": len(ids), "max_model_len": service.contexts.of(model), "tokens": ids}


async def detokenize(service: Service, body: DetokenizeRequest) -> dict[str, Any]:
    """Text of ids. Raises ApiError."""
    model = served.find(service.models, body.model)
    return {"prompt": await service.off_loop(partial(model.tokenizer.decode, body.tokens))}


async def check(service: Service, body: CheckRequest) -> dict[str, Any]:
    """Whether the constraint of a chat request with these fields is enforced, or why not. Raises ApiError.

    worst_case_tokens is what max_tokens must be for the answer never to be cut, whatever the tokenizer: a token adds a
    byte at least, and one more ends the answer. A request that is wrong in another way is still an error.
    """
    model = served.find(service.models, body.model)
    wanted = constraint.of_chat(body.as_chat(), model.format, model.shows_tools)
    told = {"field": wanted.field or None, "kind": wanted.spec.kind.value, "key": wanted.spec.key}
    if wanted.spec.kind is Kind.FREE:
        return told | {"enforced": False, "reason": "the request asks for no constraint"}
    found = await service.checker.report(wanted.spec)
    if found.status != "enforced":
        where = {"keyword": found.keyword or None, "path": found.path}
        return told | {"enforced": False, "reason": found.reason, **where}
    return told | {
        "enforced": True,
        "grammar_bytes": found.grammar_bytes,
        "compile_ms": found.compile_ms,
        "worst_case_bytes": found.worst_case_bytes,
        "worst_case_tokens": None if found.worst_case_bytes is None else found.worst_case_bytes + _STOP,
    }
