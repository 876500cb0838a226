"""A Pydantic model as the answer's type."""

import os
from enum import Enum
from typing import Annotated

from openai import OpenAI
from pydantic import BaseModel, Field


class Category(str, Enum):
    BILLING = "billing"
    SHIPPING = "shipping"
    ACCOUNT = "account"


class Ticket(BaseModel):
    category: Category
    urgent: bool
    summary: Annotated[str, Field(max_length=40)]


with OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "any"),
) as client:
    reply = client.chat.completions.parse(
        model="guided_llm",
        messages=[{"role": "user", "content": "I was charged twice. Classify this ticket."}],
        response_format=Ticket,
    )
ticket = reply.choices[0].message.parsed
assert ticket is not None
print(ticket.model_dump_json())
