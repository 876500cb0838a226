"""One case, judged: compiled, and every instance run through the masks. Runs inside a worker process."""

from __future__ import annotations

import json
import resource
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from guided_grammar.compiler import Compiled, compile_spec
from guided_grammar.conformance.case import Case, Instance, Status, Verdict
from guided_grammar.errors import GrammarError, UnsatisfiableConstraint
from guided_grammar.limits import Limits
from guided_grammar.schema.canonical import Canonical, write
from guided_grammar.schema.dialect import Draft, draft_of
from guided_grammar.session import CompiledMask, MaskEngine
from guided_grammar.spec import Kind
from guided_grammar.vocabulary import Vocabulary


@dataclass(frozen=True)
class Setting:
    """What cases are judged with.

    tokenizer: folder of a tokenizer.json, "" for single bytes only. cpu_seconds: processor time after which a case ends
        its process, None for no bound: a busy machine then lengthens no verdict.
    """

    limits: Limits
    tokenizer: str = ""
    vocab_size: int | None = None
    cpu_seconds: int | None = None


def prepare(setting: Setting) -> None:
    """Load what every case needs, so that no case's clock counts it."""
    _byte_engine()
    if setting.tokenizer:
        _token_engine(setting)


def judge(case: Case, setting: Setting) -> Verdict:
    """The verdict on `case`; what is not a GrammarError escapes."""
    _bound(setting.cpu_seconds)
    verdict = Verdict(case.id, case.group, Status.REFUSED)
    started = time.thread_time()
    try:
        compiled = compile_spec(case.spec, setting.limits)
        compile_ms = (time.thread_time() - started) * 1e3
        letters = _Level(_byte_engine(), compiled)
        tokens = _Level(_token_engine(setting), compiled, _tokenizer(setting.tokenizer)) if setting.tokenizer else None
    except UnsatisfiableConstraint as error:
        is_right = not any(instance.valid for instance in case.instances)
        status = Status.UNSATISFIABLE if is_right else Status.REFUSED
        return replace(verdict, status=status, reason=error.reason, keyword=error.keyword)
    except GrammarError as error:
        return replace(verdict, reason=error.reason, keyword=error.keyword)
    texts = [
        (at, instance.valid, text) for at, instance in enumerate(case.instances) for text in _spelled(case, instance)
    ]
    levels = [letters] if tokens is None else [letters, tokens]
    wrong = [(at, valid) for at, valid, text in texts if any(level.accepts(text) is not valid for level in levels)]
    return Verdict(
        id=case.id,
        group=case.group,
        status=Status.ENFORCED,
        num_valid=sum(i.valid for i in case.instances),
        num_invalid=sum(not i.valid for i in case.instances),
        rejected=tuple(sorted({at for at, valid in wrong if valid})),
        accepted=tuple(sorted({at for at, valid in wrong if not valid})),
        compile_ms=compile_ms,
        mask_ms=levels[-1].mask_ms,
        grammar_bytes=len(compiled.text.encode()),
        fill_us=tuple(levels[-1].fill_us),
    )


def _bound(cpu_seconds: int | None) -> None:
    if cpu_seconds is not None:
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + cpu_seconds, most))


class _Level:
    """A compiled constraint over one vocabulary: bytes, or the tokens that `tokenizer` writes a text with."""

    def __init__(self, engine: MaskEngine, compiled: Compiled, tokenizer: Tokenizer | None = None) -> None:
        self._engine, self._tokenizer = engine, tokenizer
        started, spent = time.perf_counter(), time.process_time()
        self._mask: CompiledMask = engine.compile(compiled.text, compiled.markers)
        engine.session(self._mask)
        # of two threads at once the clock tells less, on a busy machine the processor does
        self.mask_ms = min(time.perf_counter() - started, time.process_time() - spent) * 1e3
        self.fill_us: list[float] = []

    def accepts(self, text: str) -> bool:
        """Whether each token of `text` and then the first stop is legal where it stands, by the mask."""
        stop = self._engine.vocabulary.stop_ids[0]
        session = self._engine.session(self._mask)
        bits = np.zeros((1, -(-self._engine.vocabulary.vocab_size // 32)), np.int32)
        for token_id in (*self._encode(text), stop):
            started = time.thread_time()
            constrained = session.fill(bits, 0)
            self.fill_us.append((time.thread_time() - started) * 1e6)
            if constrained and not bits[0, token_id // 32] >> (token_id % 32) & 1:
                return False
            if token_id != stop and not session.accept(token_id):
                raise RuntimeError(f"token {token_id} is in the mask but not accepted")
        return True

    def _encode(self, text: str) -> list[int]:
        """Ids that write `text`: the tokenizer's own, or bytes where it would write another (NFC of it, say)."""
        data, tokens = text.encode(), self._engine.vocabulary.tokens
        if self._tokenizer is None:
            return list(data)
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        if b"".join(tokens[token_id] for token_id in ids) == data:
            return ids
        single = {token: token_id for token_id, token in enumerate(tokens) if len(token) == 1}
        return [single[bytes([byte])] for byte in data]


def _spelled(case: Case, instance: Instance) -> list[str]:
    if instance.text is not None:
        return [instance.text]
    schema: Any = case.spec.value["schema"] if case.spec.kind is Kind.JSON_SCHEMA else True
    canonical = Canonical(schema).text(instance.value)
    if instance.valid:
        return [canonical]
    if _is_respelled(schema, instance.value):
        return [json.dumps(instance.value, ensure_ascii=False)]
    return list(dict.fromkeys([canonical, write(instance.value)]))


def _is_respelled(schema: Any, value: Any) -> bool:
    """Whether the canonical text stands for another value: to draft 4 the number 1.0 is no integer, and 1 is one."""
    draft = draft_of(schema["$schema"], "") if isinstance(schema, dict) and "$schema" in schema else None
    return draft is not None and draft <= Draft.D4 and _has_whole_float(value)


def _has_whole_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_whole_float, value.values()))
    return any(map(_has_whole_float, value)) if isinstance(value, list) else isinstance(value, float) and value % 1 == 0


@lru_cache(maxsize=1)
def _byte_engine() -> MaskEngine:
    return MaskEngine(Vocabulary.of_bytes())


@lru_cache(maxsize=1)
def _token_engine(setting: Setting) -> MaskEngine:
    tokenizer = _tokenizer(setting.tokenizer)
    stop = tokenizer.get_vocab_size(with_added_tokens=True) if setting.vocab_size is None else setting.vocab_size
    vocabulary = Vocabulary.from_tokenizer(tokenizer, stop + 1, [stop])
    return MaskEngine(vocabulary, setting.limits)


@lru_cache(maxsize=1)
def _tokenizer(folder: str) -> Tokenizer:
    path = Path(folder)
    return Tokenizer.from_file(str(path / "tokenizer.json" if path.is_dir() else path))
