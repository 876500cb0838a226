"""JSON Schema cases judged by other engines, in their own spelling. Runs inside a worker process."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import llguidance
import xgrammar
from guided_grammar.conformance.case import Case, Instance, Status, Verdict

STOP = 256


def xgrammar_(case: Case) -> Verdict:
    """xgrammar's own schema converter: blanks allowed, strict mode off."""
    try:
        compiled = _compiler().compile_json_schema(json.dumps(_schema(case)), any_whitespace=True, strict_mode=False)
    except RuntimeError as error:
        return _refused(case, error)

    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(text)) and bool(matcher.is_completed())

    return _verdict(case, accepts)


def llguidance_(case: Case) -> Verdict:
    """llguidance with flexible whitespace, not lenient."""
    try:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(
            json.dumps(_schema(case)), overrides={"whitespace_flexible": True, "lenient": False}
        )
    except ValueError as error:
        return _refused(case, error)
    probe = llguidance.LLMatcher(_tokenizer(), grammar, log_level=0)
    if probe.is_error():
        return _refused(case, probe.get_error())

    def accepts(text: str) -> bool:
        matcher = llguidance.LLMatcher(_tokenizer(), grammar, log_level=0)
        tokens = list(text.encode())
        return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())

    return _verdict(case, accepts)


def _schema(case: Case) -> Any:
    return case.spec.value["schema"]


def _refused(case: Case, reason: object) -> Verdict:
    return Verdict(case.id, case.group, Status.REFUSED, str(reason)[:200])


def _verdict(case: Case, accepts: Callable[[str], bool]) -> Verdict:
    wrong = [(at, i.valid) for at, i in enumerate(case.instances) if accepts(_text(i)) is not i.valid]
    return Verdict(
        id=case.id,
        group=case.group,
        status=Status.ENFORCED,
        num_valid=sum(i.valid for i in case.instances),
        num_invalid=sum(not i.valid for i in case.instances),
        rejected=tuple(at for at, valid in wrong if valid),
        accepted=tuple(at for at, valid in wrong if not valid),
    )


def _text(instance: Instance) -> str:
    return instance.text if instance.text is not None else json.dumps(instance.value, ensure_ascii=False)


@lru_cache(maxsize=1)
def _compiler() -> xgrammar.GrammarCompiler:
    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, stop_token_ids=[STOP])
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_limit_bytes=256 << 20)


@lru_cache(maxsize=1)
def _tokenizer() -> llguidance.LLTokenizer:
    return llguidance.LLTokenizer("byte")
