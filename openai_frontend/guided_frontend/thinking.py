"""Free reasoning first, the constraint from its end on.

Two generations of the engine: the reasoning, unconstrained, up to its closing marker or its budget; then the answer,
under the constraint, on a prompt that the reasoning and the marker were added to.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from guided_engine.protocol import Event, GenerateRequest
from guided_grammar.formats import Reasoning
from guided_grammar.spec import GrammarSpec, Kind

from guided_frontend.merging import Batches, merged
from guided_frontend.prompt import PromptTokenizer

Generate = Callable[[GenerateRequest], Batches]


def calling(spec: GrammarSpec) -> str:
    """The constraint once a call has begun, "" where none may."""
    if spec.kind is not Kind.TOOLS:
        return ""
    choice = "required" if spec.value["choice"] == "auto" else spec.value["choice"]
    return GrammarSpec(spec.kind, {**spec.value, "choice": choice, "or": None}).to_json()


@dataclass
class _Thought:
    """The reasoning of one choice, once it has ended."""

    text: list[str] = field(default_factory=list)
    last: Event | None = None


@dataclass(frozen=True)
class Thinking:
    """markers: of the reasoning block, which the prompt has opened. budget: tokens it may take, None for no bound.

    on_call: the constraint from a call on that begins inside the block; "" where nothing but its closer ends the block.
    """

    tokenizer: PromptTokenizer
    markers: Reasoning
    budget: int | None = None
    on_call: str = ""

    async def run(self, request: GenerateRequest, generate: Generate) -> Batches:
        """Events of the whole answer, the marker's text included, as if it were one generation."""
        thoughts = [_Thought() for _ in range(request.sampling.n)]
        async with aclosing(generate(self._reasoning(request))) as batches:
            async for batch in batches:
                yield [self._noted(event, thoughts[event.index], request) for event in batch]
        answers = [
            self._answer(index, thought, request, generate)
            for index, thought in enumerate(thoughts)
            if not self._is_spent(thought, request)
        ]
        async with aclosing(merged(answers)) as batches:
            async for batch in batches:
                yield batch

    def _reasoning(self, request: GenerateRequest) -> GenerateRequest:
        bounds = [b for b in (self.budget, request.sampling.max_tokens) if b is not None]
        most, ends = min(bounds, default=None), self.markers.interrupted_by if self.on_call else ()
        sampling = replace(request.sampling, stop=(self.markers.close.strip(), *ends), max_tokens=most)
        return replace(request, sampling=sampling, constraint="")

    def _noted(self, event: Event, thought: _Thought, request: GenerateRequest) -> Event:
        """The event as the client sees it: only a request that is spent ends with its reasoning."""
        thought.text.append(event.text)
        if event.finish_reason is None:
            return event
        thought.last = event
        if self._is_spent(thought, request):
            return event
        closing = "" if self._is_interrupted(thought) else self.markers.close
        return replace(event, text=event.text + closing, finish_reason=None, usage=None, timings=None)

    def _is_interrupted(self, thought: _Thought) -> bool:
        """Whether a call began inside the block."""
        assert thought.last is not None
        return self.on_call != "" and thought.last.stop_reason in self.markers.interrupted_by

    def _is_spent(self, thought: _Thought, request: GenerateRequest) -> bool:
        """Whether nothing is left for an answer: the budget is gone, or the context is full."""
        assert thought.last is not None
        if thought.last.finish_reason != "length":
            return False
        left = self._left(thought, request)
        return left == 0 or (left is None and self.budget is None)

    def _left(self, thought: _Thought, request: GenerateRequest) -> int | None:
        if request.sampling.max_tokens is None:
            return None
        return max(0, request.sampling.max_tokens - _used(thought))

    async def _answer(self, index: int, thought: _Thought, request: GenerateRequest, generate: Generate) -> Batches:
        is_call = self._is_interrupted(thought)
        ids = [
            *(request.input_ids or ()),
            *self.tokenizer.encode_plain("".join(thought.text)),
            *self.tokenizer.encode_markup("" if is_call else self.markers.close),
        ]
        request = replace(request, constraint=self.on_call) if is_call else request
        left = self._left(thought, request)
        seed = request.sampling.seed
        sampling = replace(
            request.sampling, n=1, max_tokens=None if left is None else max(1, left),
            seed=None if seed is None else seed + index,
        )  # fmt: skip
        async with aclosing(generate(replace(request, input_ids=tuple(ids), sampling=sampling))) as batches:
            async for batch in batches:
                yield [_joined(event, index, thought) for event in batch]


def _used(thought: _Thought) -> int:
    assert thought.last is not None
    return (thought.last.usage or {}).get("completion_tokens", 0)


def _joined(event: Event, index: int, thought: _Thought) -> Event:
    """An answer's event; the last one accounts for both generations."""
    if event.finish_reason is None:
        return replace(event, index=index)
    assert thought.last is not None
    before, after = dict(thought.last.usage or {}), dict(event.usage or {})
    usage = {name: before.get(name, 0) + after.get(name, 0) for name in {*before, *after}}
    usage |= {name: before.get(name, 0) for name in ("prompt_tokens", "cached_tokens")}
    usage["reasoning_tokens"] = _used(thought)
    spent, more = dict(thought.last.timings or {}), dict(event.timings or {})
    timings = {name: spent.get(name, 0.0) + more.get(name, 0.0) for name in {*spent, *more}}
    timings["first_token"] = spent.get("first_token", 0.0)
    return replace(event, index=index, usage=usage, timings=timings)
