"""`guided_grammar`: a GBNF text (llama.cpp's dialect, see `gbnf_parse`) -> grammar text of the mask engine."""

from __future__ import annotations

from typing import Any

from guided_grammar.emit import to_ebnf
from guided_grammar.errors import InvalidConstraint, LimitExceeded
from guided_grammar.gbnf_loops import Loops
from guided_grammar.gbnf_parse import GbnfParser
from guided_grammar.ir import Expr, Rules
from guided_grammar.limits import DEFAULT_LIMITS, Limits


def compile_gbnf(source: Any, limits: Limits = DEFAULT_LIMITS) -> str:
    """Grammar text whose sentences are those of rule `root`; left recursion is allowed.

    Raises InvalidConstraint (with line and column), UnsupportedConstraint for token references,
    UnsatisfiableConstraint when `root` derives nothing, LimitExceeded.
    """
    rules = Rules()
    return to_ebnf(rules, parse_gbnf(source, rules, limits), limits)


def parse_gbnf(source: Any, rules: Rules, limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Add the grammar's rules to `rules`; returns the expression of its `root`. Raises as `compile_gbnf`."""
    if not isinstance(source, str):
        raise InvalidConstraint(f"a grammar must be a string, got {type(source).__name__}", keyword="gbnf")
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > limits.grammar_bytes:
        raise LimitExceeded("grammar bytes", limits.grammar_bytes, size, keyword="gbnf")
    parsed = Rules()
    definitions = GbnfParser(source, parsed, limits).parse()
    if "root" not in definitions:
        raise InvalidConstraint('no rule named "root"', keyword="gbnf")
    return Loops(parsed, rules).run(definitions["root"])
