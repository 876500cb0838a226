"""Outputs of real chat formats, from llama.cpp's test suite, read in whole and cut at every character."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guided_frontend.calls.pieces import CallArguments, CallStart, Piece, ReasoningPiece, TextPiece
from guided_frontend.reasoning import ReasoningSplitter
from guided_frontend.tool_calls import CallParser
from guided_grammar.formats import tool_format

CORPUS = Path(__file__).parents[2].parent / "shared/data/tool_formats/llama_cpp_chat.jsonl"
FAMILIES = {
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
OPENED = (
    "Qwen-QwQ",
    "Qwen3.5",
    "NVIDIA-Nemotron-3",
    "StepFun3.5",
    "deepseek-ai-DeepSeek",
    "llama-cpp",
    "GLM-4.7",
    "MiniMax-M2",
)
DIFFERENCES = {
    "chat-047": "a Markdown fence around a response of a declared schema, which a constrained answer never has"
}


def rows() -> list[tuple[str, dict[str, Any]]]:
    if not CORPUS.is_file():
        return []
    found = []
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        family = next((f for f, names in FAMILIES.items() if row["format"].startswith(tuple(names.split()))), None)
        # Rows that continue a message of the request are about prompts, rows without reasoning format ask for raw text.
        if family is not None and not row.get("continue") and row["reasoning_format"] != "none":
            found.append((family, row))
    return found


def read(family: str, row: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    fmt, output = tool_format(family), row["output"]
    calls = CallParser(fmt, {tool["name"]: tool["parameters"] for tool in row["tools"]})
    splitter = None
    if fmt.reasoning is not None and (row["reasoning_format"] or row["thinking"]):
        start, close = (output.find(mark.strip()) for mark in fmt.reasoning)
        inside = row["format"].startswith(OPENED) and bool(row["thinking"] or (close >= 0 and not 0 <= start < close))
        splitter = ReasoningSplitter(fmt.reasoning, inside, calls.triggers)
    pieces: list[Piece] = []
    for text in [*texts, None]:
        thought, answer = ("", text or "")
        if splitter is not None:
            thought, answer = splitter.finish() if text is None else splitter.feed(text)
        pieces += [ReasoningPiece(thought), *calls.feed(answer)]
    return folded([*pieces, *calls.finish()])


def folded(pieces: list[Piece]) -> dict[str, Any]:
    found: dict[str, Any] = {"content": "", "reasoning": "", "tool_calls": []}
    for piece in pieces:
        if isinstance(piece, TextPiece):
            found["content"] += piece.text
        elif isinstance(piece, ReasoningPiece):
            found["reasoning"] += piece.text
        elif isinstance(piece, CallStart):
            found["tool_calls"].append([piece.name, ""])
        elif isinstance(piece, CallArguments):
            found["tool_calls"][-1][1] += piece.text
    return found


def comparable(message: dict[str, Any]) -> dict[str, Any]:
    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text.rstrip()

    return {
        "content": message["content"].strip(),
        "reasoning": message["reasoning"].strip(),
        "tool_calls": [(name, value(arguments)) for name, arguments in message["tool_calls"]],
    }


def expected(row: dict[str, Any]) -> dict[str, Any]:
    calls = [[call["name"], call["arguments"]] for call in row["expect"]["tool_calls"]]
    return {**row["expect"], "tool_calls": calls}


@pytest.mark.skipif(not CORPUS.is_file(), reason="corpus not present")
def test_outputs_of_real_formats_are_read_as_expected_but_for_the_listed_differences() -> None:
    wrong = {}
    for family, row in rows():
        if comparable(read(family, row, [row["output"]])) != comparable(expected(row)):
            wrong[row["id"]] = row["format"]
    assert sorted(wrong) == sorted(DIFFERENCES)


@pytest.mark.skipif(not CORPUS.is_file(), reason="corpus not present")
@pytest.mark.parametrize("family", FAMILIES)
def test_d12_what_is_read_does_not_depend_on_where_outputs_are_cut(family: str) -> None:
    for _, row in (found for found in rows() if found[0] == family):
        output = row["output"]
        whole = read(family, row, [output])
        assert read(family, row, list(output)) == whole, row["id"]
        assert all(read(family, row, [output[:cut], output[cut:]]) == whole for cut in range(len(output))), row["id"]
