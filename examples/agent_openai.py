"""An agent of five forced calls and an answer, with the openai client alone.

Each step offers one tool, whose schema admits only what the steps before it gave: an order number, a slot. So a
value that travels through the conversation cannot be mistyped.
"""

import json
import os
from typing import Any

from openai import OpenAI


def tool(name: str, properties: dict[str, Any]) -> Any:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


ORDER, SLOTS = "A-4711", ["monday 9:00", "tuesday 14:30"]
# A tool, what its schema admits, and what it returns.
STEPS: list[tuple[str, dict[str, Any], Any]] = [
    ("find_order", {"customer": {"type": "string", "minLength": 1, "maxLength": 20}}, {"order": ORDER}),
    ("order_status", {"order": {"const": ORDER}}, {"status": "at the depot"}),
    ("free_slots", {"order": {"const": ORDER}, "days": {"type": "integer", "minimum": 1, "maximum": 7}}, SLOTS),
    ("book_slot", {"order": {"const": ORDER}, "slot": {"enum": SLOTS}}, {"booked": True}),
    ("notify", {"channel": {"enum": ["mail", "text message"]}, "urgent": {"type": "boolean"}}, {"sent": True}),
]

messages: list[Any] = [{"role": "user", "content": "I am Ada. Where is my order? Book a delivery slot and tell me."}]
calls: list[dict[str, Any]] = []
with OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "any"),
) as client:
    for name, properties, result in STEPS:
        asked: Any = client.chat.completions.create(
            model="guided_llm",
            messages=messages,
            tools=[tool(name, properties)],
            tool_choice={"type": "function", "function": {"name": name}},
        )
        call = asked.choices[0].message.tool_calls[0]
        calls.append({"name": call.function.name, "arguments": json.loads(call.function.arguments)})
        messages += [
            asked.choices[0].message,
            {"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)},
        ]
    answer = client.chat.completions.create(model="guided_llm", messages=messages, max_tokens=40)
print(json.dumps({"calls": calls, "answer": answer.choices[0].message.content}))
