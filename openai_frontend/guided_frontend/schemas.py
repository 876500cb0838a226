"""The request fields we honour. `null` is the same as leaving a field out; an unknown field is an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from guided_engine.protocol import CHOICES, TOP_LOGPROBS
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

Penalty = Annotated[float, Field(ge=-2, le=2)]
Unit = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Stop = Annotated[str, Field(min_length=1, max_length=1024)]


class Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=(), allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, data: Any) -> Any:
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data


class TextPart(Fields):
    type: Literal["text"]
    text: str


class CalledFunction(Fields):
    name: str
    arguments: str | dict[str, Any] = "{}"


class CalledTool(Fields):
    id: str = ""
    type: Literal["function"] = "function"
    index: int | None = None
    function: CalledFunction


class Message(Fields):
    """One message; `refusal`, `annotations` and `audio` are what the SDK's own answers carry when sent back."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[TextPart], Field(min_length=1)] | None = Field(default=None, validate_default=True)
    name: str | None = None
    tool_calls: list[CalledTool] = []
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    annotations: list[Any] = []

    @field_validator("content")
    @classmethod
    def _only_the_assistant_may_say_nothing(cls, content: Any, info: ValidationInfo) -> Any:
        if content is None and info.data.get("role", "assistant") != "assistant":
            raise PydanticCustomError("missing", "Field required")
        return content


class Function(Fields):
    name: str = Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")
    description: str | None = None
    parameters: Any = None
    strict: bool = True


class Tool(Fields):
    type: Literal["function"]
    function: Function


class FunctionName(Fields):
    name: str


class NamedTool(Fields):
    type: Literal["function"] = "function"
    function: FunctionName


class AllowedTools(Fields):
    mode: Literal["auto", "required"]
    tools: list[NamedTool]


class AllowedChoice(Fields):
    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


class JsonSchema(Fields):
    """`name`, `description` and `strict` are accepted; the schema is always enforced."""

    name: str = ""
    description: str | None = None
    schema_: Any = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(Fields):
    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: JsonSchema | None = None
    structures: list[Any] | None = None
    triggers: list[str] | None = None
    format: dict[str, Any] | None = None

    @property
    def structural_tag(self) -> dict[str, Any]:
        """The fields that only this type has."""
        found = {"structures": self.structures, "triggers": self.triggers, "format": self.format}
        return {name: value for name, value in found.items() if value is not None}


class StreamOptions(Fields):
    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class Structured(Fields):
    """vLLM's spelling of the `guided_*` fields."""

    json_: Any = Field(default=None, alias="json")
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | dict[str, Any] | None = None


class Generation(Fields):
    """What chat and text completions share."""

    model: str | None = None
    n: Annotated[int, Field(ge=1, le=CHOICES)] = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    top_p: Unit = 1.0
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1)] = 0
    min_p: Unit = 0.0
    stop: Stop | Annotated[list[Stop], Field(max_length=4)] | None = None
    max_tokens: Positive | None = None
    logit_bias: dict[str, float] | None = None
    frequency_penalty: Penalty = 0.0
    presence_penalty: Penalty = 0.0
    repetition_penalty: Annotated[float, Field(ge=0.01, le=10)] = 1.0
    jump_forward: bool = True
    user: str | None = None
    guided_choice: list[str] | None = None
    guided_regex: str | None = None
    guided_grammar: str | None = None
    guided_json: Any = None
    structured_outputs: Structured | None = None
    response_format: ResponseFormat | None = None


class TokenizeRequest(Fields):
    """Body of `POST /tokenize`: `prompt`, or `messages` with the fields that change what the template writes."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[list[Message], Field(min_length=1)] | None = None
    tools: list[Tool] = []
    think: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    def as_chat(self) -> ChatRequest:
        assert self.messages is not None
        return ChatRequest(
            messages=self.messages, tools=self.tools, think=self.think, chat_template_kwargs=self.chat_template_kwargs
        )


class DetokenizeRequest(Fields):
    """Body of `POST /detokenize`."""

    model: str | None = None
    tokens: list[int]


class ChatRequest(Generation):
    """Body of `POST /v1/chat/completions`."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Positive | None = None
    logprobs: bool = False
    top_logprobs: Annotated[int, Field(ge=0, le=TOP_LOGPROBS)] | None = None
    tools: list[Tool] = []
    tool_choice: Literal["auto", "none", "required"] | NamedTool | AllowedChoice | None = None
    parallel_tool_calls: bool = True
    allow_tools_with_response_format: bool = False
    think: bool | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    thinking_token_budget: Positive | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1)] | None = None
    metadata: dict[str, str] | None = None
    store: Literal[False] | None = None
    service_tier: Literal["auto", "default"] | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None


class CompletionRequest(Generation):
    """Body of `POST /v1/completions`."""

    prompt: str | list[str] | list[int] | list[list[int]]
    echo: bool = False
    best_of: Literal[1] | None = None
    logprobs: Annotated[int, Field(ge=0, le=TOP_LOGPROBS)] | None = None


class CheckRequest(ChatRequest):
    """Body of `POST /v1/constraints/check`: a chat request that needs no messages."""

    messages: list[Message] = []

    def as_chat(self) -> ChatRequest:
        return self
