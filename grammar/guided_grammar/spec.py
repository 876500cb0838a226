"""What a client asks for: one constraint, as a value that travels as JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from guided_grammar.errors import InvalidConstraint


class Kind(str, Enum):
    """The kinds of constraint. `value` of each is documented at `GrammarSpec`."""

    FREE = "free"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    GBNF = "gbnf"
    CHOICE = "choice"
    TOOLS = "tools"
    STRUCTURAL_TAG = "structural_tag"


@dataclass(frozen=True)
class GrammarSpec:
    """One constraint.

    kind         value
    free         None
    json_object  None: any JSON object, at any depth
    json_schema  {"schema": <schema, dict or bool>, "order": "declared" | "sorted"}
    regex        str: anchored at both ends, over UTF-8 bytes
    gbnf         str: a GBNF grammar with a rule `root`
    choice       list[str]: the output is exactly one of them
    structural_tag  {"structures": [...], "triggers": [...]} or {"format": {...}}: see `structural_tag`
    tools        {"format": str, "tools": [{"name", "parameters", "strict"}],
                  "choice": "auto" | "required" | {"name": str}, "parallel": bool,
                  "or": optional {"kind", "value"} of another spec: the answer is calls or meets that one}
    """

    kind: Kind
    value: Any = None

    def to_json(self) -> str:
        """Compact JSON, key order of `value` kept (declaration order is meaning)."""
        return json.dumps({"kind": self.kind.value, "value": self.value}, ensure_ascii=False, separators=(",", ":"))

    @property
    def key(self) -> str:
        """Cache key: equal for equal constraints, independent of spelling of the JSON text."""
        return hashlib.sha256(self.to_json().encode("utf-8", "surrogatepass")).hexdigest()

    @staticmethod
    def from_json(text: str) -> GrammarSpec:
        """Raises InvalidConstraint when `text` is not the JSON of a spec."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _not_one(str(error)) from None
        if not isinstance(data, dict) or data.get("kind") not in list(Kind):
            raise _not_one(f"it must be a JSON object whose kind is one of {', '.join(kind.value for kind in Kind)}")
        return GrammarSpec(Kind(data["kind"]), data.get("value"))


def _not_one(reason: str) -> InvalidConstraint:
    return InvalidConstraint(f"not a constraint: {reason}", keyword="constraint")


FREE = GrammarSpec(Kind.FREE)
