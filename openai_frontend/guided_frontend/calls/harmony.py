"""Reads messages on channels: `<|channel|>analysis<|message|>...<|end|><|start|>assistant...`.

Messages of the channel analysis are reasoning, calls are messages to a function, others are content. A message to
another recipient (a built-in tool that nobody offered) is left out.
"""

from __future__ import annotations

import re

from guided_frontend.calls import json_call
from guided_frontend.calls.pieces import CallEnd, CallStart, Reading, ReasoningPiece, TextPiece
from guided_frontend.calls.source import Source

_HEADS = ("<|start|>", "<|channel|>")
_ENDS = ("<|end|>", "<|return|>", "<|start|>")
_MARKS = (*_ENDS, "<|call|>", "<|channel|>")
_FUNCTION = "functions."
_MESSAGE = "<|message|>"
_MAX_HEAD = 512
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")


def read_answer(source: Source) -> Reading[None]:
    """All messages of one answer, whose first head may begin anywhere after `<|start|>assistant`."""
    while (char := (yield from source.peek())) != "":
        is_head = (yield from source.first_of(_HEADS)) or (yield from _is_recipient(source))
        if is_head and (yield from _message(source)):
            continue
        mark = yield from source.first_of(_MARKS)
        source.at += len(mark or char)
        if not mark:
            yield TextPiece(char)
        source.forget()


def _is_recipient(source: Source) -> Reading[bool]:
    start = source.at
    yield from source.skip()
    found = yield from source.starts("to=" + _FUNCTION)
    source.at = start
    return found


def _message(source: Source) -> Reading[bool]:
    """A head and its message; a head that the answer ends in is markup. False, and the position as it was, where no
    message follows."""
    start = source.at
    head = yield from source.until((_MESSAGE,), _MAX_HEAD)
    if head is None:
        is_cut = (yield from source.peek()) == ""
        source.at = source.at if is_cut else start
        return is_cut
    source.at += len(_MESSAGE)
    channels, recipients = _CHANNEL.findall(head), _RECIPIENT.findall(head)
    recipient = recipients[-1] if recipients else "assistant"
    if recipient.startswith(_FUNCTION):
        yield CallStart(recipient.removeprefix(_FUNCTION))
        yield from _arguments(source)
        return True
    while (char := (yield from source.peek())) != "" and not (yield from source.first_of(_ENDS)):
        source.at += 1
        source.forget()
        if recipient == "assistant":
            yield ReasoningPiece(char) if channels[-1:] == ["analysis"] else TextPiece(char)
    return True


def _arguments(source: Source) -> Reading[None]:
    """A JSON object; where it cannot be read on, what follows is content."""
    yield from source.skip()
    if (yield from json_call.read_arguments(source)):
        yield CallEnd()
        yield from source.skip()
