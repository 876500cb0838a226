"""LangChain's structured output."""

import os
from typing import Annotated, Literal

from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, SecretStr


class Ticket(BaseModel):
    """A support ticket."""

    category: Literal["billing", "shipping", "account"]
    urgent: bool
    summary: Annotated[str, Field(max_length=40)]


model = ChatOpenAI(
    model="guided_llm",
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
    api_key=SecretStr(os.environ.get("OPENAI_API_KEY", "any")),
)
ticket = model.with_structured_output(Ticket, method="json_schema").invoke("I cannot log in. Classify this ticket.")
assert isinstance(ticket, Ticket)
print(ticket.model_dump_json())
