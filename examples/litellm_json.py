"""LiteLLM in front of the server."""

import json
import os

import litellm

SCHEMA = {
    "type": "object",
    "properties": {"mood": {"enum": ["good", "bad"]}, "score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["mood", "score"],
    "additionalProperties": False,
}
reply = litellm.completion(
    model="openai/guided_llm",
    api_base=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "any"),
    messages=[{"role": "user", "content": "The food was wonderful."}],
    response_format={"type": "json_schema", "json_schema": {"name": "mood", "schema": SCHEMA}},
)
print(json.dumps(json.loads(reply.choices[0].message.content)))
