"""Messages and tools as chat templates expect them. Pure.

Templates disagree about earlier calls: some want arguments as objects and fail on text, some the other way round; some
show calls only beside a content of null. So an encoder tries the spellings in order until one shows the calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from guided_frontend.errors import BadRequest
from guided_frontend.schemas import CalledTool, Message, Tool

Messages = list[dict[str, Any]]
_SPELLINGS = ((False, ""), (True, ""), (False, None), (True, None))


def encoded(messages: Sequence[Message], encode: Callable[[Messages], list[int]]) -> list[int]:
    """Ids of the prompt in the first spelling that the template takes and in which it shows every call.

    A template that shows calls in no spelling gets the first that it takes. Raises the BadRequest of the first spelling
    where it takes none, and BadRequest for a message that lacks what its role needs.
    """
    if not any(message.tool_calls for message in messages):
        return encode(spelled(messages))
    taken: list[list[int]] = []
    refusals: list[BadRequest] = []
    for as_text, empty in _SPELLINGS:
        spelling = spelled(messages, as_text, empty)
        try:
            ids = encode(spelling)
        except BadRequest as refusal:
            refusals.append(refusal)
            continue
        if _shows_calls(spelling, ids, encode):
            return ids
        taken.append(ids)
    if not taken:
        raise refusals[0]
    return taken[0]


def _shows_calls(messages: Messages, ids: list[int], encode: Callable[[Messages], list[int]]) -> bool:
    """Whether the prompt would be another one without the calls."""
    try:
        return ids != encode([{k: v for k, v in message.items() if k != "tool_calls"} for message in messages])
    except BadRequest:
        return True


def spelled(messages: Sequence[Message], as_text: bool = False, empty: str | None = "") -> Messages:
    """Messages for a template: text contents, absent keys absent.

    as_text: arguments of earlier calls as JSON text instead of objects. empty: the content beside calls only.
    """
    return [_message(place, message, as_text, empty) for place, message in enumerate(messages)]


def declared(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Tools as the client declared them, without what only steers decoding (`strict`)."""
    return [tool.model_dump(exclude_none=True, exclude={"function": {"strict"}}) for tool in tools]


def _message(place: int, message: Message, as_text: bool, empty: str | None) -> dict[str, Any]:
    if message.role == "tool" and message.tool_call_id is None:
        raise BadRequest(f"messages[{place}].tool_call_id is required", f"messages[{place}].tool_call_id")
    content = _text(message) or message.refusal
    fields: dict[str, Any] = {
        "role": "system" if message.role == "developer" else message.role,
        "content": content or (empty if message.tool_calls else ""),
    }
    fields.update(_optional(message))
    if message.tool_calls:
        fields["tool_calls"] = [_call(call, as_text) for call in message.tool_calls]
    return fields


def _optional(message: Message) -> Iterator[tuple[str, str]]:
    found = {
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        "reasoning_content": message.reasoning_content or message.reasoning,
    }
    for key, value in found.items():
        if value is not None:
            yield key, value


def _text(message: Message) -> str:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content)
    return message.content or ""


def _call(call: CalledTool, as_text: bool) -> dict[str, Any]:
    arguments = _arguments(call.function.arguments)
    shown = json.dumps(arguments, ensure_ascii=False) if as_text and isinstance(arguments, dict) else arguments
    return {"id": call.id, "type": call.type, "function": {"name": call.function.name, "arguments": shown}}


def _arguments(value: str | dict[str, Any]) -> Any:
    """An object where the text is one; a text that is no JSON (a cut call sent back) stays text."""
    if isinstance(value, dict):
        return value
    try:
        return json.loads(value or "{}")
    except (ValueError, RecursionError):
        return value
