"""Rows of corpus files -> cases. A row's own keys say which format it is in; a row nothing is known of is skipped."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guided_grammar.conformance.case import Case, Instance
from guided_grammar.spec import GrammarSpec, Kind

_DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019": "https://json-schema.org/draft/2019-09/schema",
    "2020": "https://json-schema.org/draft/2020-12/schema",
}
_ANNOTATION = "only an annotation by default"
_NOT_GBNF = re.compile(r"\b(Regex|Substring|TagDispatch|TokenTagDispatch|Token|ExcludeToken)\(|\(=|\\\?|rule_level")


def cases(path: Path) -> Iterator[Case]:
    """The cases of one JSON-lines file."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield from _row(json.loads(line), path, number)


def _row(row: dict[str, Any], path: Path, number: int) -> Iterator[Case]:
    name = str(row.get("id", f"{path.stem}:{number}"))
    if "check" in row:
        yield from _check(row["check"], name)
    elif "tests" in row:
        yield _schema(row, path, name)
    elif "format" in row and "valid" in row:
        yield _format(row, name)
    elif "cases" in row:
        yield from _pattern(row, name)
    elif "grammar" in row and "accept" in row:
        yield from _grammar(row, path, name)
    elif "pattern" in row and "accept" in row:
        yield Case(name, path.parent.name + " regex", GrammarSpec(Kind.REGEX, row["pattern"]), _texts(row))
    elif "parameters" in row:
        yield Case(name, "tool parameters", _json(row["parameters"]))
    elif "tools" in row and "messages" in row:
        yield from _task(row, name)
    elif "schema" in row and ("accept_text" in row or "accept" in row):
        yield from _schema_texts(row, path, name)


def _schema(row: dict[str, Any], path: Path, name: str) -> Case:
    draft = str(row.get("draft", ""))
    if path.stem.startswith("draft"):
        draft = path.stem.removeprefix("draft").split("-")[0]
    group = row.get("keyword") or row.get("group") or path.stem
    tests = [t for t in row["tests"] if not (t["valid"] and _ANNOTATION in t.get("description", ""))]
    instances = tuple(Instance(t["valid"], value=t["data"]) for t in tests if _writable(t["data"]))
    return Case(name, str(group), _json(_dated(row["schema"], draft)), instances)


def _dated(schema: Any, draft: str) -> Any:
    """A schema that does not name its draft itself is read as one of the row's."""
    if not isinstance(schema, dict) or "$schema" in schema or draft not in _DRAFTS:
        return schema
    return {"$schema": _DRAFTS[draft], **schema}


def _format(row: dict[str, Any], name: str) -> Case:
    values = [(True, v) for v in row["valid"]] + [(False, v) for v in row["invalid"]]
    instances = tuple(Instance(valid, value=value) for valid, value in values if _writable(value))
    return Case(
        f"{name}:{row['format']}",
        f"format {row['format']}",
        _json({"type": "string", "format": row["format"]}),
        instances,
    )


def _pattern(row: dict[str, Any], name: str) -> Iterator[Case]:
    whole = tuple(Instance(c["full"], text=c["s"]) for c in row["cases"] if _writable(c["s"]))
    found = tuple(Instance(c["search"], value=c["s"]) for c in row["cases"] if _writable(c["s"]))
    yield Case(f"{name}/full", "guided_regex", GrammarSpec(Kind.REGEX, row["pattern"]), whole)
    yield Case(f"{name}/search", "pattern", _json({"type": "string", "pattern": row["pattern"]}), found)


def _grammar(row: dict[str, Any], path: Path, name: str) -> Iterator[Case]:
    """Grammars of llama.cpp's dialect; those that need token ids or xgrammar's own macros are left out."""
    if row.get("needs_token_ids") or row.get("prefix_only") or row.get("root", "root") != "root":
        return
    if path.parent.name == "xgrammar" and _NOT_GBNF.search(row["grammar"]):
        return
    yield Case(name, f"{path.parent.name} grammars", GrammarSpec(Kind.GBNF, row["grammar"]), _texts(row))


def _task(row: dict[str, Any], name: str) -> Iterator[Case]:
    tools = [tool["function"] for tool in row["tools"]]
    for at, tool in enumerate(tools):
        calls = [c for c in row.get("expected_calls", ()) if c["name"] == tool["name"] and c.get("valid_for_schema")]
        instances = tuple(Instance(True, value=c["arguments"]) for c in calls if _writable(c["arguments"]))
        yield Case(f"{name}/{at}", "bfcl parameters", _json(tool.get("parameters", {})), instances)
    value = {
        "format": "hermes",
        "tools": [_unlike(t) for t in _distinct(tools)],
        "choice": "required",
        "parallel": True,
    }
    yield Case(f"{name}/tools", "bfcl tool lists", GrammarSpec(Kind.TOOLS, value))


def _distinct(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({tool["name"]: tool for tool in tools}.values())


def _unlike(tool: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "parameters": tool.get("parameters")}


def _check(check: dict[str, Any], name: str) -> Iterator[Case]:
    kind = check["type"]
    if kind in ("schema", "schema_no_crash"):
        yield from _schema_texts(check, Path("bugs/bugs"), name)
    elif kind in ("grammar", "grammar_no_crash"):
        yield Case(name, "bugs", GrammarSpec(Kind.GBNF, check["grammar"]), _texts(check))
    elif kind == "regex":
        yield Case(name, "bugs", GrammarSpec(Kind.REGEX, check["pattern"]), _texts(check))
    elif kind == "choice":
        accept = tuple(Instance(True, text=choice) for choice in check["choices"])
        yield Case(name, "bugs", GrammarSpec(Kind.CHOICE, check["choices"]), accept + _texts(check))


def _schema_texts(row: dict[str, Any], path: Path, name: str) -> Iterator[Case]:
    """Texts recorded from another engine: its verdict counts where an independent validator shares it."""
    from guided_grammar.conformance.oracle import is_valid

    instances: list[Instance] = []
    for key, valid in (("accept", True), ("accept_text", True), ("reject", False), ("reject_text", False)):
        for text in row.get(key, ()):
            try:
                value = json.loads(text)
            except ValueError:
                instances.append(Instance(False, text=text))
                continue
            if _writable(value) and is_valid(row["schema"], value) is valid:
                instances.append(Instance(valid, value=value))
    yield Case(name, path.parent.name + " schemas", _json(row["schema"]), tuple(instances))


def _texts(row: dict[str, Any]) -> tuple[Instance, ...]:
    accept = [Instance(True, text=t) for t in row.get("accept", ()) if _writable(t)]
    return tuple(accept + [Instance(False, text=t) for t in row.get("reject", ()) if _writable(t)])


def _json(schema: Any) -> GrammarSpec:
    return GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema})


def _writable(value: Any) -> bool:
    """Whether `value` has a JSON text in UTF-8: finite numbers, no lone surrogates."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, dict):
        return all(_writable(k) and _writable(v) for k, v in value.items())
    return not isinstance(value, list) or all(map(_writable, value))
