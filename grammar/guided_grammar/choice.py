"""`guided_choice`: the output is exactly one of some texts -> grammar text of the mask engine.

The texts become a trie whose branchings are rules, shared where their rests agree, so that the next character decides.
"""

from __future__ import annotations

from typing import Any

from guided_grammar.emit import to_ebnf
from guided_grammar.errors import InvalidConstraint, LimitExceeded
from guided_grammar.ir import EMPTY, Expr, Rules, alt, seq, text
from guided_grammar.limits import DEFAULT_LIMITS, Limits


def compile_choice(choices: Any, limits: Limits = DEFAULT_LIMITS) -> str:
    """Grammar text of `choices`, a non-empty list of strings; duplicates count once, "" is the empty answer.

    Raises InvalidConstraint for anything else and for lone surrogates, LimitExceeded over choice_count or
    choice_bytes (UTF-8, all texts together).
    """
    rules = Rules()
    return to_ebnf(rules, choice_expr(choices, rules, limits), limits)


def choice_expr(choices: Any, rules: Rules, limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Add the rules of the trie to `rules`; returns its root's expression. Raises as `compile_choice`."""
    return _trie(sorted(set(_checked(choices, limits))), rules)


def _checked(choices: Any, limits: Limits) -> list[str]:
    if not isinstance(choices, list) or not choices:
        raise InvalidConstraint("must be a list of at least one string", keyword="choice")
    if len(choices) > limits.choice_count:
        raise LimitExceeded("choices", limits.choice_count, len(choices), keyword="choice")
    size = 0
    for at, choice in enumerate(choices):
        if not isinstance(choice, str):
            raise InvalidConstraint(f"must be a string, got {type(choice).__name__}", keyword="choice", path=f"/{at}")
        try:
            size += len(choice.encode())
        except UnicodeEncodeError:
            raise InvalidConstraint("holds a lone surrogate", keyword="choice", path=f"/{at}") from None
    if size > limits.choice_bytes:
        raise LimitExceeded("choice bytes", limits.choice_bytes, size, keyword="choice")
    return choices


def _trie(words: list[str], rules: Rules) -> Expr:
    """One pass over sorted words. `open_nodes` is the path to the last word: (depth in characters, its branches)."""
    open_nodes: list[tuple[int, list[Expr]]] = [(0, [])]
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        shared = _common(word, following) if at + 1 < len(words) else 0
        if open_nodes[-1][0] == len(word):
            open_nodes[-1][1].append(EMPTY)
        else:
            if shared > open_nodes[-1][0]:
                open_nodes.append((shared, []))
            open_nodes[-1][1].append(text(word[open_nodes[-1][0] :]))
        _close(open_nodes, word, shared, rules)
    return alt(*open_nodes[0][1])


def _close(open_nodes: list[tuple[int, list[Expr]]], word: str, shared: int, rules: Rules) -> None:
    """Finish the nodes deeper than what the next word shares, each into its parent."""
    while open_nodes[-1][0] > shared:
        depth, branches = open_nodes.pop()
        if open_nodes[-1][0] < shared:
            open_nodes.append((shared, []))
        parent, siblings = open_nodes[-1]
        siblings.append(seq(text(word[parent:depth]), rules.add(alt(*branches), "c")))


def _common(a: str, b: str) -> int:
    """Length of the longest common prefix."""
    for at, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return at
    return min(len(a), len(b))
