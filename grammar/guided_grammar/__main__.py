"""python -m guided_grammar check --kind json_schema|regex|gbnf|choice FILE
python -m guided_grammar conformance FILE.jsonl... [--tokenizer DIR] [--json OUT]
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from guided_grammar.check import CHECKED_KINDS, Report, check, spec_of
from guided_grammar.errors import InvalidConstraint
from guided_grammar.limits import DEFAULT_LIMITS
from guided_grammar.spec import Kind

_SLOW_COMPILE_MS = 1000.0
_SLOW_FILL_US = 10_000.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0; 1 when `check` refuses or `conformance` saw an invalid instance accepted."""
    options = _parser().parse_args(arguments)
    return _check(options) if options.command == "check" else _conformance(options)


def _check(options: argparse.Namespace) -> int:
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    try:
        report = check(spec_of(Kind(options.kind), text))
    except InvalidConstraint as error:
        report = Report("refused", error.keyword, error.path, error.reason, None, 0.0, 0)
    print(json.dumps(asdict(report), ensure_ascii=False))
    return int(report.status == "refused")


def _conformance(options: argparse.Namespace) -> int:
    from guided_grammar.conformance.judge import Setting
    from guided_grammar.conformance.rows import cases
    from guided_grammar.conformance.run import run
    from guided_grammar.conformance.scoreboard import faults, refusals, scores, slowest, table, to_json

    limits = replace(DEFAULT_LIMITS, schema_bytes=options.schema_bytes)
    setting = Setting(limits, options.tokenizer, options.vocab_size)
    selected = itertools.islice(
        itertools.chain.from_iterable(cases(Path(name)) for name in options.files), 0, options.limit, options.every
    )
    verdicts = []
    for verdict in run(selected, setting, options.seconds):
        verdicts.append(verdict)
        if sys.stderr.isatty():
            print(f"\r{len(verdicts)} {verdict.id:<60.60}", end="", file=sys.stderr)
    lines = scores(verdicts)
    print(table(lines), "\n\n| refused | reason |\n| --- | --- |\n", refusals(verdicts), "\n", sep="")
    print(*faults(verdicts), *slowest(verdicts, _SLOW_COMPILE_MS, _SLOW_FILL_US), sep="\n")
    if options.json:
        Path(options.json).write_text(json.dumps(to_json(verdicts), ensure_ascii=False, indent=1), encoding="utf-8")
    return int(lines[-1].accepted > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m guided_grammar", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("check", help="say whether a constraint is enforced, as JSON")
    one.add_argument("--kind", choices=[kind.value for kind in CHECKED_KINDS], required=True)
    one.add_argument("file", help="a file, - for standard input")
    many = commands.add_parser("conformance", help="run corpora of constraints with texts they accept and reject")
    many.add_argument("files", nargs="+", metavar="FILE.jsonl")
    many.add_argument("--tokenizer", default="", help="folder of a tokenizer.json: also run token by token")
    many.add_argument("--vocab-size", type=int, help="width of the model's logits, if wider than the tokenizer")
    many.add_argument("--schema-bytes", type=int, default=1 << 22, help="limit on the size of a schema")
    many.add_argument("--seconds", type=float, default=30.0, help="limit on one case")
    many.add_argument("--every", type=int, default=1, help="take each n-th case only")
    many.add_argument("--limit", type=int, help="stop after this many cases were read")
    many.add_argument("--json", default="", help="write scores and verdicts here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
