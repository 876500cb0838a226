"""What is left of an answer that was cut, and what a repair of it is worth. Needs no server."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator

from tokenizers import Tokenizer

from study.families import FAMILIES, Family
from study.job import validator
from study.records import Journal
from study.repair import repair

EXPERIMENT = "truncation"
_DECILES = 10


def run(journal: Journal, tokenizer: Tokenizer, documents: int) -> None:
    """Documents of each family, cut by the model's own tokens at each tenth; four questions about each repair."""
    for family in FAMILIES:
        for decile, counts in _cuts(family, tokenizer, documents):
            journal.fact(EXPERIMENT, family=family.name, cut_percent=decile * 100 // _DECILES, **counts)


def _cuts(family: Family, tokenizer: Tokenizer, documents: int) -> Iterator[tuple[int, dict[str, int]]]:
    rng = random.Random(family.name)
    texts = [json.dumps(family.document(rng)) for _ in range(documents)]
    tokens = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    for decile in range(1, _DECILES):
        counts: Counter[str] = Counter()
        for text, ids in zip(texts, tokens, strict=True):
            counts.update(_questions(family, text, tokenizer.decode(ids[: len(ids) * decile // _DECILES])))
        yield decile, {"documents": documents, **dict(counts)}


def _questions(family: Family, whole: str, cut: str) -> dict[str, int]:
    """As cut: does it parse? Repaired: does it parse, validate, pass the rules, and is it what was being written?"""
    repaired = repair(cut)
    if repaired is None:
        return {"cut_parses": _parses(cut)}
    document = json.loads(repaired)
    valid = validator(family.schema)(document)
    return {
        "cut_parses": _parses(cut),
        "repaired": 1,
        "valid": int(valid),
        "rules": int(valid and family.rules(document)),
        "identical": int(document == json.loads(whole)),
    }


def _parses(text: str) -> int:
    try:
        json.loads(text)
    except ValueError:
        return 0
    return 1
