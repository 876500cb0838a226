"""`make demo`: start the stack, ask one question whose answer must match a JSON Schema, validate it, stop."""

from __future__ import annotations

import json
import sys
import time

import jsonschema
from openai import OpenAI
from serve import banner, say
from stack import Ports, Stack, StackConfig
from triton_wheel import LaunchError

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 24},
        "class": {"enum": ["warrior", "mage", "rogue"]},
        "age": {"type": "integer", "minimum": 1, "maximum": 120},
        "skills": {"type": "array", "items": {"type": "string", "maxLength": 16}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "class", "age", "skills"],
    "additionalProperties": False,
}
PROMPT = "Invent a fantasy hero. Answer as JSON with name, class, age and skills."


def ask(config: StackConfig) -> tuple[str, str | None]:
    """The answer's text and its finish_reason."""
    client = OpenAI(base_url=f"http://127.0.0.1:{config.ports.frontend}/v1", api_key="any")
    reply = client.chat.completions.create(
        model="guided_llm",
        messages=[{"role": "user", "content": PROMPT}],
        response_format={"type": "json_schema", "json_schema": {"name": "hero", "schema": SCHEMA}},
        max_tokens=200,
        temperature=0.7,
        seed=7,
    )
    return reply.choices[0].message.content or "", reply.choices[0].finish_reason


def main() -> int:
    config = StackConfig(ports=Ports.free())
    stack = Stack(config, say)
    try:
        stack.start()
        print(banner(config, stack).split("\n\n")[0], flush=True)
        print(f"\nrequest   {PROMPT}\nschema    {json.dumps(SCHEMA)}")
        begin = time.monotonic()
        text, finish = ask(config)
        print(f"answer    {text}\nfinish    {finish}, {time.monotonic() - begin:.2f} s")
        jsonschema.validate(json.loads(text), SCHEMA)
        print("valid     yes: the document parses and jsonschema accepts it")
    except (LaunchError, ValueError, jsonschema.ValidationError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    finally:
        stack.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
