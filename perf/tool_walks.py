"""Random models under the grammar of every family's calls: whatever is written, our parser must read as valid calls.

    python perf/tool_walks.py                                        every family, over single bytes
    python perf/tool_walks.py --vocabulary hermes=FOLDER ...         over the tokenizer in FOLDER

One JSON line for each family, vocabulary and mode; exit status 1 when an answer was read as anything but valid calls.
Answers that reach `--max-tokens` are counted as cut: only their complete calls are looked at.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from guided_engine.tokenizer import Tokenizer
from guided_grammar.compiler import compile_spec
from guided_grammar.formats import FORMATS, STRING_MARK, CallStyle, ToolFormat, tool_format
from guided_grammar.session import MaskEngine
from tool_calls.cases import Mode, modes
from tool_calls.judge import faults, read
from tool_calls.vocabularies import BYTES, of_bytes, of_folder
from tool_calls.walker import Walker

_SHOWN_FAULTS = 3
_THOUGHT = 24


@dataclass
class Result:
    """Counts of one mode. `seconds`: of the walks, compilation aside."""

    format: str
    vocabulary: str
    size: int
    mode: str
    walks: int = 0
    valid: int = 0
    cut: int = 0
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


class Family:
    """One row over one vocabulary."""

    def __init__(self, row: ToolFormat, name: str, tokenizer: Tokenizer, max_tokens: int) -> None:
        self.row, self._name, self._tokenizer = row, name, tokenizer
        self._engine = MaskEngine(tokenizer.vocabulary)
        self._walker = Walker(
            tokenizer, max_tokens, STRING_MARK if row.style is CallStyle.GEMMA else row.argument_close
        )

    def run(self, mode: Mode, walks: int, seconds: float) -> Result:
        """As many walks as fit in the time, `walks` at most."""
        compiled = compile_spec(mode.spec(self.row))
        mask = self._engine.compile(compiled.text, compiled.markers)
        result = Result(self.row.name, self._name, self._tokenizer.vocabulary.vocab_size, mode.name)
        begin = time.monotonic()
        for number in range(walks):
            if time.monotonic() - begin > seconds:
                break
            seed = f"{self.row.name} {mode.name} {number}"
            is_called = mode.choice == "auto" and number % 2 == 0
            start = self.row.trigger or self.row.lead + self.row.before_name if is_called else ""
            walk = self._walker.walk(self._engine.session(mask), compiled.markers, seed, start, number % 4 < 2)
            thought = self._thought(seed) if mode.thinks else ()
            message, reason = read(self.row, (*thought, *walk.pieces), walk.is_whole, mode.thinks or None)
            found = list(faults(mode, message, reason, is_called)) if walk.is_whole else []
            result.walks += 1
            result.valid += walk.is_whole and not found
            result.cut += not walk.is_whole
            result.calls += len(message.get("tool_calls", ()))
            result.tokens += len(walk.pieces)
            if found and len(result.faults) < _SHOWN_FAULTS:
                result.faults.append(f"{found[0]}: {walk.text[-400:]!r}")
        result.seconds = round(time.monotonic() - begin, 1)
        return result

    def _thought(self, seed: str) -> tuple[str, str]:
        assert self.row.reasoning is not None
        noise = self._walker.noise(random.Random(seed), _THOUGHT)
        marks = (*self.row.reasoning.markup, self.row.trigger, *self.row.also)
        return ("Hm" if any(mark.strip() in noise for mark in marks if mark) else noise, self.row.reasoning.close)


def _families(asked: argparse.Namespace) -> Iterator[Family]:
    if not asked.vocabulary:
        for row in FORMATS.values():
            if row.has_calls and asked.format in ("", row.name):
                yield Family(row, BYTES, of_bytes(row), asked.max_tokens)
    for pair in asked.vocabulary:
        name, _, folder = pair.partition("=")
        yield Family(tool_format(name), Path(folder).name, of_folder(Path(folder)), asked.max_tokens)


def main() -> int:
    """Writes the lines; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", action="append", default=[], metavar="FORMAT=FOLDER")
    parser.add_argument("--format", default="", help="only this one of the formats over bytes")
    parser.add_argument("--walks", type=int, default=200, help="for each mode, at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each mode, at most")
    parser.add_argument("--max-tokens", type=int, default=1500)
    asked = parser.parse_args()
    is_sound = True
    for family in _families(asked):
        for mode in modes(family.row):
            result = family.run(mode, asked.walks, asked.seconds)
            is_sound &= result.valid + result.cut == result.walks
            print(json.dumps(asdict(result), ensure_ascii=False), flush=True)
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
