"""Validity of JSON values by an independent validator (the package jsonschema, a development dependency)."""

from __future__ import annotations

import importlib
from typing import Any


def is_valid(schema: Any, value: Any) -> bool | None:
    """None where the validator cannot tell: it is not installed, or the schema is malformed or refers elsewhere."""
    try:
        validators = importlib.import_module("jsonschema.validators")
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        return bool(kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid(value))
    except Exception:
        return None
