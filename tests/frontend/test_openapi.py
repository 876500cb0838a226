"""The served OpenAPI document against the application."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from guided_frontend.app import create_app
from guided_frontend.openapi import ENDPOINTS
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import ScriptedBackend

from .conftest import Frontend


def routes(app: FastAPI) -> set[tuple[str, str]]:
    found = [route for route in app.routes if isinstance(route, APIRoute)]
    return {(m.lower(), route.path_format) for route in found for m in route.methods if m != "HEAD"}


def test_the_document_holds_exactly_the_routes(settings: Settings, model: ServedModel) -> None:
    assert set(ENDPOINTS) == routes(create_app(settings, ScriptedBackend(), (model,)))


@pytest.fixture(scope="module")
def document(shared: Frontend) -> Any:
    return shared.http.get("/openapi.json").json()


def test_every_reference_of_the_document_leads_somewhere(document: Any) -> None:
    text = json.dumps(document)
    refs = {part.split('"')[0] for part in text.split('"$ref": "')[1:]}
    assert refs and all(ref.removeprefix("#/components/schemas/") in document["components"]["schemas"] for ref in refs)


def test_the_documented_body_takes_null_wherever_the_server_does(document: Any) -> None:
    schema = {"$ref": "#/components/schemas/ChatRequest", "components": document["components"]}
    fields = document["components"]["schemas"]["ChatRequest"]["properties"]
    body = {**dict.fromkeys(fields), "messages": [{"role": "user", "content": "x", "name": None}]}
    jsonschema.Draft202012Validator(schema).validate(body)
