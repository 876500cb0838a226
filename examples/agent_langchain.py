"""An agent loop of LangChain: five tools bound one by one, their results sent back, and an answer.

The identifier that a tool returned is what the next tool's schema admits.
"""

import json
import os
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr


def tool(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TICKET, TEAMS = "T-17", ["network", "accounts"]
STEPS: list[tuple[str, dict[str, Any], Any]] = [
    ("open_ticket", {"summary": {"type": "string", "minLength": 1, "maxLength": 30}}, {"ticket": TICKET}),
    ("classify", {"ticket": {"const": TICKET}, "severity": {"type": "integer", "minimum": 1, "maximum": 4}}, TEAMS),
    ("assign", {"ticket": {"const": TICKET}, "team": {"enum": TEAMS}}, {"assigned": True}),
    ("schedule", {"ticket": {"const": TICKET}, "date": {"type": "string", "format": "date"}}, {"scheduled": True}),
    ("confirm", {"ticket": {"const": TICKET}, "send_mail": {"type": "boolean"}}, {"confirmed": True}),
]

model = ChatOpenAI(
    model="guided_llm",
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
    api_key=SecretStr(os.environ.get("OPENAI_API_KEY", "any")),
)
messages: list[BaseMessage] = [HumanMessage("My laptop finds no network. Please open a ticket and see to it.")]
calls: list[dict[str, Any]] = []
for name, properties, result in STEPS:
    bound = model.bind_tools([tool(name, properties)], tool_choice="required", parallel_tool_calls=False)
    reply = bound.invoke(messages)
    [call] = reply.tool_calls
    calls.append({"name": call["name"], "arguments": call["args"]})
    messages += [reply, ToolMessage(json.dumps(result), tool_call_id=call["id"])]
answer = model.bind(max_tokens=40).invoke(messages)
print(json.dumps({"calls": calls, "answer": answer.content}))
