"""Outputs of real models and what they mean: llama.cpp's test suite, and the fixtures of `canitoolcall`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
from guided_grammar.formats import ToolFormat, tool_format

from tool_calls.judge import read

LLAMA_CPP = Path(__file__).parents[2].parent / "shared/data/tool_formats/llama_cpp_chat.jsonl"
_CHATS = {
    "hermes": "Qwen-QwQ NousResearch-Hermes hermes-json ibm-granite-granite-4",
    "llama3_json": "meta-llama-Llama-3",
    "mistral_v3": "mistralai-Mistral-Nemo",
    "mistral_v11": "mistralai-Ministral-3 Mistral-Small-3.2 unsloth-mistral-Devstral",
    "deepseek_v3": "deepseek-ai-DeepSeek-R1 llama-cpp-deepseek-r1",
    "deepseek_v3_1": "deepseek-ai-DeepSeek-V3.1",
    "kimi_k2": "Kimi-K2 moonshotai-Kimi-K2",
    "granite3": "ibm-granite-granite-3",
    "qwen_xml": "Qwen3.5 Qwen3-Coder NVIDIA-Nemotron-3 StepFun3.5",
    "glm45": "GLM-4.6",
    "glm47": "GLM-4.7",
    "minimax_m2": "MiniMax-M2",
    "lfm2": "LFM2",
    "gemma4": "google-gemma-4",
    "gpt_oss": "openai-gpt-oss",
}
# Chat formats whose templates open the block of reasoning.
_OPENED = (
    "Qwen-QwQ", "Qwen3.5", "NVIDIA-Nemotron-3", "StepFun3.5", "deepseek-ai-DeepSeek", "llama-cpp", "GLM-4.7",
    "MiniMax-M2",
)  # fmt: skip
# The first whose second text a model's name holds.
_MODELS = {
    "qwen3-hermes": (("hermes", ""),),
    "qwen3-xml": (("qwen_xml", ""),),
    "gpt-oss": (("gpt_oss", ""),),
    "gemma4": (("gemma4", ""),),
    "glm": (("glm45", "GLM-4.5"), ("glm47", "")),
    "deepseek": (("deepseek_v3_1", "V3.1"), ("", "V3.2"), ("", "V4"), ("deepseek_v3", "")),
    "kimi": (("", "K3"), ("kimi_k2", "")),
    "llama": (("pythonic", "Llama-4"), ("llama3_json", "")),
    "mistral": (("mistral_v3", "v0.3"), ("mistral_v11", "")),
}


@dataclass(frozen=True)
class Fixture:
    """One output. inside: it begins within the block of reasoning. reads_reasoning: blocks of it are split off.

    content, reasoning, calls (name, arguments): what it means; calls None where nothing but no complete call is asked.
    """

    id: str
    row: ToolFormat
    output: str
    tools: tuple[dict[str, Any], ...]
    inside: bool
    reads_reasoning: bool
    content: str
    reasoning: str
    calls: tuple[tuple[str, Any], ...] | None
    source: str = ""

    @property
    def schemas(self) -> dict[str, Any]:
        return {tool["name"]: tool["parameters"] for tool in self.tools}

    def read(self, pieces: Sequence[str]) -> tuple[dict[str, Any], str]:
        """The message and the finish reason, read from this output in pieces."""
        return read(self.row, pieces, inside=self.inside if self.reads_reasoning else None, schemas=self.schemas)

    @property
    def is_as_expected(self) -> bool:
        """Whether it means what it should, blanks around texts aside."""
        message, finish_reason = self.read([self.output])
        if self.calls is None:
            return finish_reason != "tool_calls"
        functions = [call["function"] for call in message.get("tool_calls", ())]
        found = tuple((function["name"], value_of(function["arguments"])) for function in functions)
        texts = [(message["content"] or "").strip(), message.get("reasoning", "").strip()]
        return found == self.calls and texts == [self.content.strip(), self.reasoning.strip()]

    @property
    def has_valid_calls(self) -> bool:
        """Whether it is calls to its tools with arguments that their schemas allow."""
        return bool(self.calls) and self.is_as_expected and all(self._is_valid(*call) for call in self.calls or ())

    def _is_valid(self, name: str, arguments: Any) -> bool:
        parameters = self.schemas.get(name, False)
        return bool(jsonschema.Draft202012Validator({} if parameters is None else parameters).is_valid(arguments))

    def splits(self, step: int = 1) -> Iterator[list[str]]:
        """The output character by character, and cut in two at every `step`th place."""
        yield list(self.output)
        yield from ([self.output[:cut], self.output[cut:]] for cut in range(0, len(self.output), step))

    def differs_when_cut(self, step: int = 1) -> bool:
        """Whether what is read depends on where it is cut."""
        whole = self.read([self.output])
        return any(self.read(pieces) != whole for pieces in self.splits(step))


def llama_cpp() -> Iterator[Fixture]:
    """Rows of our formats; none where the corpus is absent. Rows that continue a message of the request are about
    prompts, rows without a reasoning format ask for raw text: both are left out."""
    for line in LLAMA_CPP.read_text(encoding="utf-8").splitlines() if LLAMA_CPP.is_file() else ():
        entry = json.loads(line)
        name = next((f for f, names in _CHATS.items() if entry["format"].startswith(tuple(names.split()))), None)
        if name is not None and not entry.get("continue") and entry["reasoning_format"] != "none":
            yield _of_llama_cpp(entry, tool_format(name))


def _of_llama_cpp(entry: dict[str, Any], row: ToolFormat) -> Fixture:
    output, told = entry["output"], entry["expect"]
    start, close = (-1, -1) if row.reasoning is None else (output.find(mark.strip()) for mark in row.reasoning)
    opened = entry["format"].startswith(_OPENED) and bool(entry["thinking"] or (close >= 0 and not 0 <= start < close))
    return Fixture(
        id=entry["id"],
        row=row,
        output=output,
        tools=tuple({"name": tool["name"], "parameters": tool["parameters"]} for tool in entry["tools"]),
        inside=opened,
        reads_reasoning=bool(entry["reasoning_format"] or entry["thinking"]),
        content=told["content"],
        reasoning=told["reasoning"],
        calls=tuple((call["name"], value_of(call["arguments"])) for call in told["tool_calls"]),
        source=entry["format"],
    )


def canitoolcall() -> Iterator[Fixture]:
    """Fixtures of our formats."""
    folder = resources.files("canitoolcall") / "_data/fixtures"
    for family, rows in _MODELS.items():
        told = json.loads((folder / family / "family.json").read_text(encoding="utf-8"))
        prompts = {model["repo"]: model.get("default_generation_prompt", "") for model in told["reference_models"]}
        for file in sorted((folder / family).iterdir(), key=lambda file: file.name):
            for line in file.read_text(encoding="utf-8").splitlines() if file.name.endswith(".jsonl") else ():
                entry = json.loads(line)
                name = next(row for row, part in rows if any(part in model for model in entry["models"]))
                if name:
                    yield _of_canitoolcall(entry, tool_format(name), prompts)


def _of_canitoolcall(entry: dict[str, Any], row: ToolFormat, prompts: dict[str, str]) -> Fixture:
    """prompts: what a model's prompt ends with where the fixture does not tell."""
    told = entry.get("expected")
    prompt = entry.get("generation_prompt") or prompts.get(entry["tokenizer"]["repo"], "")
    opener = row.reasoning.open.strip() if row.reasoning else ""
    listed = [] if told is None else told["tool_calls"] or []
    return Fixture(
        id=entry["id"],
        row=row,
        output=entry["raw_output"],
        tools=tuple(
            {"name": tool["function"]["name"], "parameters": tool["function"].get("parameters")}
            for tool in entry["tools"] or ()
        ),
        inside=opener != "" and prompt.rstrip().endswith(opener),
        reads_reasoning=True,
        content="" if told is None else told["content"] or "",
        reasoning="" if told is None else told["reasoning_content"] or "",
        calls=None if told is None else tuple((call["name"], call["arguments"]) for call in listed),
        source=entry["models"][0],
    )


def value_of(text: Any) -> Any:
    """The value of a JSON text; what is none stays text."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text.rstrip() if isinstance(text, str) else text
