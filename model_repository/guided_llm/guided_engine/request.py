"""One accepted generation and its choices."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from guided_engine.detokenize import Detokenizer
from guided_engine.protocol import Event, RequestError, SamplingParams, TokenLogprob
from guided_engine.stops import StopStrings


class Sink(Protocol):
    """Where the events of a request go. `close` is called exactly once, last."""

    @property
    def cancelled(self) -> bool: ...

    def send(self, event: Event) -> None: ...

    def close(self, error: RequestError | None = None) -> None: ...


class Matcher(Protocol):
    """The part of a grammar session that a choice drives."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def is_closed(self) -> bool: ...

    @property
    def is_terminated(self) -> bool: ...

    def accept(self, token_id: int) -> bool: ...

    def forced_tokens(self) -> list[int]: ...


@dataclass
class Timings:
    """Clock readings of `time.monotonic`; compile is a duration in seconds."""

    arrival: float = field(default_factory=time.monotonic)
    compile: float = 0.0
    start: float = 0.0
    first_token: float = 0.0

    def report(self, now: float) -> dict[str, float]:
        return {
            "queue": round(self.start - self.arrival, 6),
            "compile": round(self.compile, 6),
            "first_token": round(self.first_token - self.arrival, 6),
            "total": round(now - self.arrival, 6),
        }


class Request:
    """One generation: its prompt, how to draw, and `sampling.n` choices that share the prompt's cache.

    max_tokens: tokens a choice may generate. stop_ids: ids that end a free answer.
    context: what the last event says of the engine's bound on prompt and answer together.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        sampling: SamplingParams,
        sink: Sink,
        *,
        max_tokens: int,
        stop_ids: frozenset[int],
        pieces: Sequence[bytes],
        drops_space: bool = False,
        matchers: Sequence[Matcher | None] | None = None,
        jump_forward: bool = True,
        timings: Timings | None = None,
        context: int | None = None,
    ) -> None:
        self.prompt, self.sampling, self.sink = list(prompt), sampling, sink
        self.max_tokens, self.stop_ids, self.pieces = max_tokens, stop_ids, pieces
        # a forced run is not computed before it is sent, so its log-probs would come too late
        self.jump_forward = jump_forward and sampling.logprobs is None
        self.timings = timings or Timings()
        self.context, self.cached_tokens = context, 0
        seed = random.getrandbits(63) if sampling.seed is None else sampling.seed
        matchers = matchers or [None] * sampling.n
        # a constrained answer is exact, its leading space included; only free text is shown the tokenizer's way
        self.choices = [
            Choice(self, index, matcher, seed, Detokenizer(pieces, drops_space and matcher is None))
            for index, matcher in enumerate(matchers)
        ]

    @property
    def is_finished(self) -> bool:
        return all(choice.is_finished for choice in self.choices)


class Choice:
    """One answer of a request; a row of the batch while it runs.

    tokens: prompt and answer, without the token that ended it. num_cached: how many of them have keys and values.
    """

    def __init__(
        self, request: Request, index: int, matcher: Matcher | None, seed: int, detokenizer: Detokenizer
    ) -> None:
        self.request, self.index, self.matcher = request, index, matcher
        self.seed = _mix(seed, index)
        self.tokens = list(request.prompt)
        self.num_cached = self.num_forced = self.num_steps = self.num_preempted = 0
        self.output_counts: Counter[int] = Counter()
        self.finish_reason: str | None = None
        self._detokenizer = detokenizer
        self._stops = StopStrings(request.sampling.stop, matcher is not None)
        self._was_complete = False
        self._num_reported, self._text = len(self.tokens), ""

    @property
    def num_generated(self) -> int:
        return len(self.tokens) - len(self.request.prompt)

    @property
    def is_finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def num_pending(self) -> int:
        """Tokens that have no keys and values yet; at least one while the choice runs."""
        return len(self.tokens) - self.num_cached

    @property
    def waits_for_sibling(self) -> bool:
        """The first choice is about to read the prompt, which this one then copies."""
        first = self.request.choices[0]
        ready = first.is_finished or first.num_cached >= len(self.request.prompt) - 1
        return self is not first and not self.num_generated and not ready

    def advance(self, token: int, logprob: TokenLogprob | None) -> Event:
        """Take the token drawn for this step and the text that the grammar forces behind it.

        Raises RequestError 500 when the matcher refuses the token: mask and matcher disagree.
        """
        self.num_steps += 1
        self._text += self._take(token)
        self._jump()
        return self.report(logprob)

    def open(self) -> None:
        """Take what the grammar forces before the first token; it is then computed along with the prompt.

        The choice may be finished after that, without a step.
        """
        if not self.num_generated:
            self._jump()

    def report(self, logprob: TokenLogprob | None = None) -> Event:
        """What was added since the last event. logprob: of the one token that was."""
        if not self.request.timings.first_token:
            self.request.timings.first_token = time.monotonic()
        if self.is_finished and not self._stops.is_hit:
            self._text += self._stops.flush()
        added, text = tuple(self.tokens[self._num_reported :]), self._text
        self._num_reported, self._text = len(self.tokens), ""
        logprobs = (logprob,) if logprob is not None and added else None
        return self._event(added, text, logprobs)

    def reuse(self, num_tokens: int) -> None:
        """The first tokens' keys and values were copied from another row."""
        self.num_cached = num_tokens
        # OpenAI's figure: of the prompt, once, however many choices share it
        if self.index == 0 and not self.num_preempted:
            self.request.cached_tokens = min(num_tokens, len(self.request.prompt))

    def cache(self, num_tokens: int) -> None:
        """The next pending tokens got their keys and values."""
        self.num_cached += num_tokens

    def restart(self) -> None:
        """Forget keys and values; the next steps compute them again from the tokens."""
        self.num_cached = 0
        self.num_preempted += 1

    def _jump(self) -> None:
        """Append what the grammar forces now, as far as the answer may go."""
        if self.matcher is None or self.is_finished or not self.request.jump_forward:
            return
        for forced in self.matcher.forced_tokens():
            if not self.is_finished:
                self._text += self._take(forced)
                self.num_forced += 1

    def _take(self, token: int) -> str:
        """Append one token; returns the text to release and sets `finish_reason` when it is the last."""
        can_end = self.matcher is None or self.matcher.is_complete
        if self.matcher is not None and not self.matcher.accept(token):
            raise RequestError(f"token {token} was drawn against the constraint", 500)
        ended = token in self.request.stop_ids if self.matcher is None else self.matcher.is_terminated
        if ended or (can_end and token in self.request.sampling.stop_token_ids):
            self.finish_reason = "stop"
            return ""
        self.tokens.append(token)
        self.output_counts[token] += 1
        text = self._stops.push(self._detokenizer.push(token), can_end)
        if self._stops.is_hit or self._is_closed():
            self.finish_reason = "stop"
        elif self.num_generated >= self.request.max_tokens:
            self.finish_reason = "length"
        return text

    def _is_closed(self) -> bool:
        """The document is whole and nothing but a stop may follow. Looked at once each time it becomes complete."""
        if self.matcher is None:
            return False
        was_complete, self._was_complete = self._was_complete, self.matcher.is_complete
        return self._was_complete and not was_complete and self.matcher.is_closed

    def _event(self, added: tuple[int, ...], text: str, logprobs: tuple[TokenLogprob, ...] | None) -> Event:
        if self.finish_reason is None:
            return Event(self.index, added, text, logprobs)
        usage = {
            "prompt_tokens": len(self.request.prompt),
            "completion_tokens": self.num_generated,
            "cached_tokens": self.request.cached_tokens,
            "forced_tokens": self.num_forced,
            "steps": self.num_steps,
        }
        timings = self.request.timings.report(time.monotonic())
        return Event(
            self.index, added, text, logprobs, self.finish_reason, usage, timings, self.request.context,
            stop_reason=self._stops.hit or None,
        )  # fmt: skip


def _mix(seed: int, index: int) -> int:
    """A signed 64-bit key per choice; choice 0 keeps the request's seed."""
    key = (seed + index * 0x9E3779B97F4A7C15) & (2**64 - 1)
    return key - 2**64 if key >= 2**63 else key
