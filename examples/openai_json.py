"""An answer that meets a JSON Schema."""

import json
import os

from openai import OpenAI

SCHEMA = {
    "type": "object",
    "properties": {
        "category": {"enum": ["billing", "shipping", "account"]},
        "urgent": {"type": "boolean"},
        "summary": {"type": "string", "minLength": 5, "maxLength": 40},
    },
    "required": ["category", "urgent", "summary"],
    "additionalProperties": False,
}

with OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "any"),
) as client:
    reply = client.chat.completions.create(
        model="guided_llm",
        messages=[{"role": "user", "content": "My parcel is three days late. Classify this ticket."}],
        response_format={"type": "json_schema", "json_schema": {"name": "ticket", "schema": SCHEMA}},
    )
print(json.dumps(json.loads(reply.choices[0].message.content or "")))
