"""An agent of openai-agents whose final answer is an object."""

import asyncio
import os
from typing import Annotated, Literal

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel, Field


class Ticket(BaseModel):
    category: Literal["billing", "shipping", "account"]
    summary: Annotated[str, Field(max_length=40)]


async def main() -> None:
    set_tracing_disabled(True)
    async with AsyncOpenAI(
        base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
        api_key=os.environ.get("OPENAI_API_KEY", "any"),
    ) as client:
        agent = Agent(
            name="clerk",
            instructions="You sort support tickets.",
            model=OpenAIChatCompletionsModel("guided_llm", client),
            output_type=Ticket,
        )
        done = await Runner.run(agent, "My parcel is late.")
    print(done.final_output_as(Ticket).model_dump_json())


asyncio.run(main())
