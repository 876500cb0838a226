"""A call that the model must make, the tool's result, and the answer that follows."""

import json
import os
from typing import Any

from openai import OpenAI

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "temperature",
        "description": "The temperature in a town",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string", "maxLength": 20}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["town", "unit"],
            "additionalProperties": False,
        },
    },
}
messages: list[Any] = [{"role": "user", "content": "How warm is it in Ulm?"}]

with OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "any"),
) as client:
    asked: Any = client.chat.completions.create(
        model="guided_llm", messages=messages, tools=[TOOL], tool_choice="required", parallel_tool_calls=False
    )
    call = asked.choices[0].message.tool_calls[0]
    arguments = json.loads(call.function.arguments)
    messages += [asked.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}]
    answer = client.chat.completions.create(
        model="guided_llm", messages=messages, tools=[TOOL], tool_choice="none", max_tokens=40
    )
print(json.dumps({"arguments": arguments, "answer": answer.choices[0].message.content}))
