"""The one error tree of constraints.

GrammarError                 a constraint was not accepted; HTTP 400
├── InvalidConstraint        it is not well-formed (bad JSON, bad regex, unknown keyword value)
├── UnsupportedConstraint    it is well-formed, but cannot be enforced exactly
├── UnsatisfiableConstraint  no output could ever match it
└── LimitExceeded            it is larger than a limit allows; carries `limit` and `got`
"""

from __future__ import annotations

from typing import Any


class GrammarError(ValueError):
    """A constraint that is refused.

    keyword: the schema keyword, grammar rule or field at fault ("pattern", "guided_regex"); "" when there is none.
    path: JSON pointer into the constraint (RFC 6901), "" for its root.
    """

    code = "invalid_constraint"

    def __init__(self, reason: str, *, keyword: str = "", path: str = "") -> None:
        self.reason, self.keyword, self.path = reason, keyword, path
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The sentence shown to clients: what, where, why."""
        where = f" at {self.path or '/'}" if self.keyword else ""
        what = f"{self.keyword}{where}: " if self.keyword else ""
        return what + self.reason

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields, the inverse of `error_from_dict`."""
        return {"code": self.code, "reason": self.reason, "keyword": self.keyword, "path": self.path}


class InvalidConstraint(GrammarError):
    code = "invalid_constraint"


class UnsupportedConstraint(GrammarError):
    code = "unsupported_constraint"


class UnsatisfiableConstraint(GrammarError):
    code = "unsatisfiable_constraint"


class LimitExceeded(GrammarError):
    """`got` is the measured value, or None where measuring stopped at the limit."""

    code = "limit_exceeded"

    def __init__(self, name: str, limit: int, got: int | None, *, keyword: str = "", path: str = "") -> None:
        self.name, self.limit, self.got = name, limit, got
        measured = "more" if got is None else str(got)
        super().__init__(f"{name} limit is {limit}, got {measured}", keyword=keyword, path=path)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "name": self.name, "limit": self.limit, "got": self.got}


_BY_CODE = {c.code: c for c in (InvalidConstraint, UnsupportedConstraint, UnsatisfiableConstraint)}


def error_from_dict(fields: dict[str, Any]) -> GrammarError:
    """Rebuild an error that crossed a process or network boundary as `to_dict()`."""
    where = {"keyword": str(fields.get("keyword", "")), "path": str(fields.get("path", ""))}
    if fields.get("code") == LimitExceeded.code:
        return LimitExceeded(str(fields["name"]), int(fields["limit"]), fields["got"], **where)
    return _BY_CODE.get(str(fields.get("code")), GrammarError)(str(fields["reason"]), **where)
