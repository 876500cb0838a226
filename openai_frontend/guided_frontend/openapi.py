"""The OpenAPI document: bodies as the field models read them, and every status that an endpoint answers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic.json_schema import models_json_schema

from guided_frontend.schemas import (
    ChatRequest,
    CheckRequest,
    CompletionRequest,
    DetokenizeRequest,
    Fields,
    TokenizeRequest,
)

Schema = dict[str, Any]
_JSON = ("application/json",)
_STREAM = (*_JSON, "text/event-stream")
_TEXT = ("text/plain",)
_REF = "#/components/schemas/{model}"
STATUSES = {
    400: "a field is wrong, unknown or cannot be honoured, or the constraint cannot be enforced",
    401: "no valid API key",
    404: "no such model",
    408: "the request passed its deadline",
    413: "the body is over the limit",
    429: "too many requests; Retry-After says when to come back",
    500: "the model or this server failed",
    503: "the model cannot be reached or is stuck; Retry-After says when to come back",
}
_KEYED = (401, 429, 500)
_ASKED = (400, 404, 413, *_KEYED)
_GENERATED = (*_ASKED, 408, 503)


@dataclass(frozen=True)
class Endpoint:
    """answer: the schema of a success. media: what a success may be, which of them the request decides."""

    summary: str
    answer: Schema
    body: type[Fields] | None = None
    errors: tuple[int, ...] = ()
    media: tuple[str, ...] = _JSON


def _object(required: str, **properties: Schema) -> Schema:
    return {"type": "object", "required": required.split(), "properties": properties}


def _named(value: str) -> Schema:
    return {"const": value}


_LIST: Schema = {"type": "array", "items": {"type": "object"}}
_COMPLETION = "id object created model choices usage"
_MODEL = _object("id object created owned_by", object=_named("model"))
ENDPOINTS: dict[tuple[str, str], Endpoint] = {
    ("post", "/v1/chat/completions"): Endpoint(
        "A chat completion, whole or as server-sent events",
        _object(_COMPLETION, object=_named("chat.completion"), choices=_LIST),
        ChatRequest, _GENERATED, _STREAM,
    ),
    ("post", "/v1/completions"): Endpoint(
        "A text completion, whole or as server-sent events",
        _object(_COMPLETION, object=_named("text_completion"), choices=_LIST),
        CompletionRequest, _GENERATED, _STREAM,
    ),
    ("post", "/tokenize"): Endpoint(
        "Ids of a prompt or of messages", _object("count max_model_len tokens"), TokenizeRequest, _ASKED
    ),
    ("post", "/detokenize"): Endpoint("Text of ids", _object("prompt"), DetokenizeRequest, _ASKED),
    ("post", "/v1/constraints/check"): Endpoint(
        "Whether a constraint would be enforced; the engine is not asked",
        _object("field kind key enforced", enforced={"type": "boolean"}), CheckRequest, _ASKED,
    ),
    ("get", "/v1/models"): Endpoint(
        "Models by every name", _object("object data", data={"type": "array", "items": _MODEL}), errors=_KEYED
    ),
    ("get", "/v1/models/{name}"): Endpoint("One model", _MODEL, errors=(404, *_KEYED)),
    ("get", "/health"): Endpoint("This process is up", _object("status"), errors=(500,)),
    ("get", "/health/ready"): Endpoint("The models answer", _object("status"), errors=(500, 503)),
    ("get", "/version"): Endpoint("Server and libraries", _object("server packages"), errors=(500,)),
    ("get", "/metrics"): Endpoint("Prometheus' text format", {"type": "string"}, errors=(500,), media=_TEXT),
}  # fmt: skip
_ERROR = _object(
    "error",
    error=_object(
        "message type code", message={"type": "string"}, type={"type": "string"}, code={"type": "integer"},
        param={"type": "string"},
    ),
)  # fmt: skip


def document(title: str, version: str) -> Schema:
    """OpenAPI 3.1 of every endpoint."""
    kinds = [endpoint.body for endpoint in ENDPOINTS.values() if endpoint.body is not None]
    _, defined = models_json_schema([(kind, "validation") for kind in kinds], ref_template=_REF)
    schemas = {name: _with_nulls(schema) for name, schema in defined["$defs"].items()}
    paths: dict[str, Schema] = {}
    for (method, path), endpoint in ENDPOINTS.items():
        paths.setdefault(path, {})[method] = _operation(path, endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": {**schemas, "Error": _ERROR}},
    }


def _with_nulls(schema: Schema) -> Schema:
    """`null` leaves any optional field unset."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        if name not in required and field.get("type", "null") != "null":
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}]}
    return schema


def _operation(path: str, endpoint: Endpoint) -> Schema:
    success: Schema = {"description": "success", "content": {media: {} for media in endpoint.media}}
    success["content"][endpoint.media[0]] = {"schema": endpoint.answer}
    failure = {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}
    told = {str(code): {"description": STATUSES[code], "content": failure} for code in sorted(endpoint.errors)}
    if path == "/health/ready":
        told["503"] = {"description": "a model does not answer", "content": success["content"]}
    operation: Schema = {"summary": endpoint.summary, "responses": {"200": success, **told}}
    if endpoint.body is not None:
        schema = {"schema": {"$ref": _REF.format(model=endpoint.body.__name__)}}
        operation["requestBody"] = {"required": True, "content": {"application/json": schema}}
    if "{name}" in path:
        name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        operation["parameters"] = [name]
    return operation
