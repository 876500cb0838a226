"""Three constrained answers at once."""

import asyncio
import json
import os

from openai import AsyncOpenAI

QUESTIONS = ["Is fire hot?", "Is ice warm?", "Is water wet?"]


async def ask(client: AsyncOpenAI, question: str) -> str | None:
    reply = await client.chat.completions.create(
        model="guided_llm",
        messages=[{"role": "user", "content": question}],
        extra_body={"guided_choice": ["yes", "no"]},
    )
    return reply.choices[0].message.content


async def main() -> None:
    async with AsyncOpenAI(
        base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
        api_key=os.environ.get("OPENAI_API_KEY", "any"),
    ) as client:
        answers = await asyncio.gather(*(ask(client, question) for question in QUESTIONS))
    print(json.dumps(dict(zip(QUESTIONS, answers, strict=True))))


asyncio.run(main())
