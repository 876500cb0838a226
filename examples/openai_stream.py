"""The text of an object as it comes, and the object at the end."""

import os
import sys
from typing import Annotated

from openai import OpenAI
from pydantic import BaseModel, Field


class Weather(BaseModel):
    town: Annotated[str, Field(max_length=20)]
    celsius: Annotated[int, Field(ge=-40, le=50)]


with (
    OpenAI(
        base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
        api_key=os.environ.get("OPENAI_API_KEY", "any"),
    ) as client,
    client.chat.completions.stream(
        model="guided_llm",
        messages=[{"role": "user", "content": "How warm is it in Ulm?"}],
        response_format=Weather,
    ) as stream,
):
    for event in stream:
        if event.type == "content.delta":
            print(event.delta, end="", file=sys.stderr, flush=True)
    weather = stream.get_final_completion().choices[0].message.parsed
assert weather is not None
print(weather.model_dump_json())
