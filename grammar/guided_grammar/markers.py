"""A row's markup in grammars: rules of their own, which a vocabulary that holds a marker as one token turns into it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from guided_grammar.emit import to_ebnf
from guided_grammar.formats import ToolFormat
from guided_grammar.ir import Expr, Rules, seq, text

_HINT = "marker"
_RULE = re.compile(rf"^({_HINT}_\d+) ::= (.*)$", re.MULTILINE)


def markup(value: str, row: ToolFormat, rules: Rules) -> Expr:
    """A row's text, each marker in it as a rule of its own."""
    marks = sorted(row.markers, key=len, reverse=True)
    if not marks:
        return text(value)
    parts = re.split(f"({'|'.join(map(re.escape, marks))})", value)
    return seq(*(rules.add(text(part), _HINT) if part in row.markers else text(part) for part in parts))


def with_tokens(grammar: str, ids: Mapping[str, int]) -> str:
    """Grammar text of `to_ebnf` in which the rules of the markers in `ids` (text -> token id) write that token only.

    A trigger in free text stays text, so that a spelled marker begins a call as much as its token does.
    """
    tokens = {to_ebnf(Rules(), text(marker)).removeprefix("root ::= ").rstrip(): id_ for marker, id_ in ids.items()}

    def resolved(rule: re.Match[str]) -> str:
        return f"{rule[1]} ::= Token({tokens[rule[2]]})" if rule[2] in tokens else rule[0]

    return _RULE.sub(resolved, grammar) if tokens else grammar
