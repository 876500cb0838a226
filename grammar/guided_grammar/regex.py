"""Regular expressions as languages: `pattern` of JSON Schema (search) and `guided_regex` (the whole text)."""

from __future__ import annotations

from collections.abc import Callable

from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.emit import to_ebnf
from guided_grammar.errors import LimitExceeded, UnsatisfiableConstraint
from guided_grammar.ir import Expr, Rules
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.linear import Verbatim, to_expr
from guided_grammar.ranges import Ranges
from guided_grammar.regex_ahead import Ahead, leading
from guided_grammar.regex_automaton import Watch, automaton
from guided_grammar.regex_parse import Dialect, parse
from guided_grammar.regex_syntax import Assertion, Loop, Sequence, Set

GUIDED = "guided_regex"


def compile_regex(text: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """EBNF of the texts that match `text` from end to end.

    `.` and classes are Unicode characters, so that every output is valid UTF-8.
    Raises LimitExceeded for more than `limits.regex_bytes` of UTF-8 or an automaton past `limits.automaton_bytes`.
    """
    rules = Rules()
    return to_ebnf(rules, regex_expr(text, rules, Budget(limits)), limits)


def regex_expr(text: str, rules: Rules, budget: Budget) -> Expr:
    """Add the rules of `compile_regex` to `rules`; returns their root. Raises as it does."""
    size, limit = len(text.encode("utf-8", "surrogatepass")), budget.limits.regex_bytes
    if size > limit:
        raise LimitExceeded("regex bytes", limit, size, keyword=GUIDED)
    dfa = full_language(text, budget)
    if dfa.is_empty():
        raise UnsatisfiableConstraint("no text matches the regex", keyword=GUIDED)
    return to_expr(dfa, Verbatim(), rules, budget)


def full_language(pattern: str, budget: Budget, *, dialect: Dialect = "guided", keyword: str = GUIDED) -> Dfa:
    """The texts that match from end to end."""
    watch = _watch(pattern, budget.limits.automaton_bytes, keyword, "")

    def language(text: str, search: bool) -> Dfa:
        return automaton(parse(text, dialect, keyword=keyword, limits=budget.limits), search, budget, watch)

    ahead = leading(pattern, anchored=True)
    if ahead is None:
        return language(pattern, False)
    return _conditioned(language(ahead.rest, False), ahead, lambda text: language(text, True), budget)


def search_language(pattern: str, budget: Budget, path: str = "", *, keyword: str = "pattern") -> Dfa:
    """The texts that contain a match of an ECMAScript regex."""
    watch = _watch(pattern, budget.limits.pattern_automaton_bytes, keyword, path)

    def language(text: str) -> Dfa:
        return automaton(parse(text, "ecma", keyword=keyword, path=path, limits=budget.limits), True, budget, watch)

    ahead = leading(pattern, anchored=False)
    return language(pattern) if ahead is None else _conditioned(language(f"^{ahead.rest}"), ahead, language, budget)


def _conditioned(dfa: Dfa, ahead: Ahead, search: Callable[[str], Dfa], budget: Budget) -> Dfa:
    for condition, is_barred in ahead.conditions:
        begun = search(f"^(?:{condition})")
        dfa = dfa.difference(begun, budget) if is_barred else dfa.intersect(begun, budget)
    return dfa


def counted_class(
    pattern: str, budget: Budget, path: str = "", *, keyword: str = "pattern"
) -> tuple[Ranges, int, int | None] | None:
    """The characters and the bounds of a pattern `^[...]{low,high}$`, None for any other pattern."""
    if leading(pattern, anchored=False) is not None:
        return None
    match parse(pattern, "ecma", keyword=keyword, path=path, limits=budget.limits):
        case Sequence((Assertion.START, Loop(Set(ranges), low, high), Assertion.END)):
            return ranges, low, high
    return None


def _watch(pattern: str, limit: int, keyword: str, path: str) -> Watch:
    def check(size: int) -> None:
        if size > limit:
            shown = repr(pattern if len(pattern) <= 80 else pattern[:77] + "...")
            name = f"automaton too large for the regex {shown}: bytes"
            raise LimitExceeded(name, limit, None, keyword=keyword, path=path)

    return check
