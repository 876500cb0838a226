"""Validity of JSON values by an independent validator (the package jsonschema, a development dependency)."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any


def is_valid(schema: Any, value: Any) -> bool | None:
    """None where the validator cannot tell: it is not installed, or the schema is malformed or refers elsewhere."""
    if find_spec("jsonschema") is None:
        return None
    validators = importlib.import_module("jsonschema.validators")
    malformed = importlib.import_module("jsonschema.exceptions").SchemaError
    elsewhere = importlib.import_module("referencing.exceptions").Unresolvable
    try:
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        kind.check_schema(schema)
        return bool(kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid(value))
    except (malformed, elsewhere):
        return None
