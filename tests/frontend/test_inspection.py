from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import ScriptedBackend
from openai.types import Model

from .conftest import Frontend, served_by

USER = [{"role": "user", "content": "Hi"}]


def post(frontend: Frontend, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    answer = frontend.post(body, path)
    return answer.status_code, answer.json()


def test_tokenize_and_detokenize_are_inverse(frontend: Frontend) -> None:
    status, ids = post(frontend, "/tokenize", {"prompt": "a<|im_end|>é"})
    assert status == 200 and ids["count"] == len(ids["tokens"]) == 4 and ids["max_model_len"] == 4096
    assert post(frontend, "/detokenize", {"tokens": ids["tokens"]}) == (200, {"prompt": "a<|im_end|>é"})


def test_tokenize_of_messages_gives_what_the_engine_is_sent(frontend: Frontend) -> None:
    fields = {"messages": USER, "tools": [{"type": "function", "function": {"name": "f"}}]}
    frontend.post(fields)
    assert tuple(post(frontend, "/tokenize", fields)[1]["tokens"]) == frontend.backend.requests[0].input_ids


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/tokenize", {}, 400),
        ("/tokenize", {"prompt": "a", "messages": USER}, 400),
        ("/tokenize", {"prompt": "a", "model": "nope"}, 404),
        ("/detokenize", {"tokens": [10**9]}, 400),
        ("/detokenize", {"tokens": ["a"]}, 400),
        ("/v1/constraints/check", {"tools": "x"}, 400),
        ("/v1/constraints/check", {"tool_choice": "required"}, 400),
    ],
)
def test_what_cannot_be_answered_is_an_error_in_the_envelope(
    frontend: Frontend, path: str, body: dict[str, Any], status: int
) -> None:
    code, answer = post(frontend, path, body)
    assert code == status == answer["error"]["code"]


def test_check_says_that_a_constraint_is_enforced_without_asking_the_engine(frontend: Frontend) -> None:
    frontend.backend.is_up = False
    status, told = post(frontend, "/v1/constraints/check", {"guided_regex": "[a-z]{3}"})
    assert status == 200 and told["enforced"] is True
    assert (told["field"], told["kind"]) == ("guided_regex", "regex") and told["grammar_bytes"] > 0
    assert (told["worst_case_bytes"], told["worst_case_tokens"]) == (3, 4)
    assert frontend.backend.requests == []


def test_check_says_why_a_constraint_is_refused(frontend: Frontend) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^z(?=x)y$"}}}
    status, told = post(frontend, "/v1/constraints/check", {"guided_json": schema})
    assert status == 200 and told["enforced"] is False
    assert told["keyword"] == "pattern" and told["path"].startswith("/properties/a") and told["reason"]


def test_check_without_a_constraint_says_so(frontend: Frontend) -> None:
    assert post(frontend, "/v1/constraints/check", {})[1]["enforced"] is False


def test_one_model_is_found_by_any_of_its_names(frontend: Frontend) -> None:
    for name in ("smollm2", "default"):
        card = httpx.get(f"{frontend.url}/v1/models/{name}").json()
        assert Model.model_validate(card).id == name and card["root"] == "smollm2"
        assert (card["tool_format"], card["shows_tools"]) == ("hermes", True)
    assert httpx.get(f"{frontend.url}/v1/models/no/such").status_code == 404


def test_several_models_are_served_by_their_names(settings: Settings, model: ServedModel) -> None:
    other = replace(model, names=("other",), triton_name="second")
    backend = ScriptedBackend()
    with served_by(settings, backend, model, other) as frontend:
        for name in ("other", "default", None):
            frontend.ask(model=name)
        assert [m.id for m in frontend.client.models.list()] == ["smollm2", "default", "other"]
    assert backend.asked == ["second", "guided_llm", "guided_llm"]


def test_d50_the_versions_of_everything_are_told(frontend: Frontend) -> None:
    told = httpx.get(f"{frontend.url}/version").json()
    assert told["server"] == {"triton": "2.51.0"} and told["packages"]["tokenizers"]


def test_the_openapi_document_describes_the_bodies(frontend: Frontend) -> None:
    document = httpx.get(f"{frontend.url}/openapi.json").json()
    posted = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]["application/json"]
    body = document["components"]["schemas"][posted["schema"]["$ref"].rpartition("/")[2]]
    assert "messages" in body["required"] and "guided_json" in body["properties"]
