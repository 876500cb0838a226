"""The objects that a structural tag is made of: known keys, checked types, errors that say where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guided_grammar.errors import GrammarError, InvalidConstraint, UnsupportedConstraint

KEYWORD = "structural_tag"


@dataclass(frozen=True)
class TagFields:
    """An object of the constraint whose keys are known. `path`: where it stands."""

    values: Mapping[str, Any]
    path: str

    @staticmethod
    def of(value: Any, path: str, *known: str) -> TagFields:
        """Null is unset."""
        if not isinstance(value, dict):
            raise invalid(f"must be an object, got {type(value).__name__}", path)
        values = {key: inner for key, inner in value.items() if inner is not None}
        for key in values:
            if key not in known:
                raise UnsupportedConstraint(f"{key!r} is not supported here", keyword=KEYWORD, path=f"{path}/{key}")
        return TagFields(values, path)

    def need(self, key: str, kind: type) -> Any:
        if not isinstance(self.values.get(key), kind):
            raise invalid(f"{key} must be a {kind.__name__}", f"{self.path}/{key}")
        return self.values[key]

    def flag(self, key: str) -> bool:
        return bool(self.need(key, bool)) if key in self.values else False

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts that are not empty, or one text; absent is none."""
        found = self.values.get(key, [])
        texts = [found] if isinstance(found, str) else found
        if not isinstance(texts, list) or not all(isinstance(one, str) and one for one in texts):
            raise invalid(f"{key} must hold texts that are not empty", f"{self.path}/{key}")
        return tuple(texts)


def tag_fields(value: Any, path: str) -> TagFields:
    fields = TagFields.of(value, path, "type", "begin", "content", "end")
    if fields.values.get("type", "tag") != "tag":
        raise invalid("must be a tag", f"{path}/type")
    if "end" not in fields.values:
        raise invalid("end is required", f"{path}/end")
    return fields


def located(error: GrammarError, path: str) -> GrammarError:
    error.path = path + error.path
    error.keyword = error.keyword or KEYWORD
    error.args = (error.message,)
    return error


def invalid(reason: str, path: str) -> InvalidConstraint:
    return InvalidConstraint(reason, keyword=KEYWORD, path=path)
