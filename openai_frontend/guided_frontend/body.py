"""Raw body bytes to a request value, with errors that name the field."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from guided_frontend.errors import BadRequest
from guided_frontend.schemas import Fields

Body = TypeVar("Body", bound=Fields)

_SPELLINGS = (
    (re.compile(r"grammar|[eg]bnf|lark"), "guided_grammar"),
    (re.compile(r"regex|pattern"), "guided_regex"),
    (re.compile(r"choice|enum|label"), "guided_choice"),
    (re.compile(r"json|schema"), "guided_json or response_format"),
    (re.compile(r"^function_call$|^functions$"), "tools and tool_choice"),
    (re.compile(r"guided|structur|constrain|decoding|format"),
     "response_format, guided_choice, guided_regex, guided_grammar, guided_json or structured_outputs"),
)  # fmt: skip
_TELLING = {"missing": 0, "extra_forbidden": 1}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`. Raises BadRequest: not UTF-8, not JSON, NaN or Infinity, a lone surrogate."""
    try:
        text = raw.decode("utf-8")
        data = json.loads(text, parse_constant=_not_a_number)
        if _SURROGATE.search(text):
            json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadRequest("the body holds a lone surrogate, which is not text") from None
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error or 'nested too deeply'}") from None
    if not isinstance(data, dict):
        raise BadRequest(f"the body must be a JSON object, got {type(data).__name__}")
    return data


def read(kind: type[Body], raw: bytes, *, ignore_unknown: bool = False) -> Body:
    """A request of that kind. Raises BadRequest naming the first field at fault.

    `ignore_unknown` drops unknown fields, except those that look like a constraint: they are always an error.
    """
    data = parse_object(raw)
    known = _names(kind)
    for name in [n for n in data if n not in known]:
        if data.pop(name) is not None:
            _refuse_unknown(name, ignore_unknown)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise _bad_field(error.errors(include_url=False, include_context=False)) from None
    except RecursionError:
        raise BadRequest("the body is nested too deeply") from None


@cache
def _names(kind: type[Fields]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in kind.model_fields.items())


def _refuse_unknown(name: str, ignorable: bool) -> None:
    for pattern, spelling in _SPELLINGS:
        if pattern.search(name):
            raise BadRequest(f"unknown field {name!r}: this server's spelling is {spelling}", name)
    if not ignorable:
        raise BadRequest(f"unknown field {name!r}", name)


def _not_a_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _bad_field(errors: Sequence[Any]) -> BadRequest:
    """Of the errors of a union's members, the one that got deepest into the value says most.

    A field that is missing beside an unknown one was misspelled.
    """
    error = max(errors, key=lambda e: (len(e["loc"]), _TELLING.get(e["type"], 2)))
    where = _pointer(error["loc"])
    if error["type"] == "extra_forbidden":
        return BadRequest(f"unknown field {where!r}", where)
    if error["type"] == "missing":
        return BadRequest(f"{where} is required", where)
    got = error.get("input")
    shown = (
        json.dumps(got, ensure_ascii=False, default=str) if not isinstance(got, (dict, list)) else type(got).__name__
    )
    message = f"{error['msg'][:1].lower()}{error['msg'][1:]}"
    return BadRequest(f"{where}: {message}, got {shown[:200]}", where)


_UNION_MEMBER = re.compile(
    r"^(str|int|bool|float|constrained-str|TextPart|NamedTool|AllowedChoice|list\[.*|literal\[.*|lax.*)$"
)


def _pointer(loc: Sequence[int | str]) -> str:
    """`messages[0].content` of ("messages", 0, "content"); pydantic's names of union members are left out."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not _UNION_MEMBER.match(part):
            text += f".{part}" if text else part
    return text
