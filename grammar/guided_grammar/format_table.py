"""The table of formats as Markdown, for the documentation: `python -m guided_grammar.format_table`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from guided_grammar.formats import FORMATS, STRING_MARK, CallStyle, ToolFormat

_ARGUMENTS = {"city": "Paris", "days": 2}


def example(row: ToolFormat) -> str:
    """A call `get_weather(city="Paris", days=2)` as this format writes it."""
    name = row.after_name.replace("{index}", "0")
    call = row.before_name + "get_weather" + name + _arguments(row) + row.after_arguments + row.call_close
    return (row.prefix if row.trigger else "") + row.lead + call + row.close


def _arguments(row: ToolFormat) -> str:
    match row.style:
        case CallStyle.XML:
            return "".join(
                f"{row.argument_open}{key}{row.after_key}{value}{row.argument_close}"
                for key, value in _ARGUMENTS.items()
            )
        case CallStyle.PYTHON:
            return ", ".join(f"{key}={json.dumps(value)}" for key, value in _ARGUMENTS.items())
        case CallStyle.GEMMA:
            return f"city:{STRING_MARK}Paris{STRING_MARK},days:2"
    return json.dumps(_ARGUMENTS)


def markdown() -> str:
    """A table of the rows, then one call in each."""
    return "\n".join([*_table(), "", *_examples()])


def _table() -> Iterator[str]:
    yield "| format | models | arguments | text around calls | several calls | reasoning |"
    yield "|---|---|---|---|---|---|"
    for row in FORMATS.values():
        yield "| " + " | ".join(_cells(row)) + " |"


def _cells(row: ToolFormat) -> Iterator[str]:
    order = "alphabetical" if row.is_sorted else "as declared"
    yield f"`{row.name}`"
    yield row.models
    yield f"{row.style.value}, {order}" if row.has_calls else "–"
    yield ("yes" if row.trigger else "no: calls or text") if row.has_calls else "–"
    yield ("no" if row.is_single else "yes") if row.has_calls else "–"
    yield "–" if row.reasoning is None else f"`{_cell(row.reasoning.open)}` … `{_cell(row.reasoning.close)}`"


def _cell(text: str) -> str:
    return text.strip().replace("|", "\\|")


def _examples() -> Iterator[str]:
    for row in FORMATS.values():
        if row.has_calls:
            yield from (f"`{row.name}`:", "", "```", example(row), "```", "")


if __name__ == "__main__":
    sys.stdout.write(markdown())
