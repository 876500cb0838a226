"""Strings that are written as they are, up to a mark that ends them."""

from __future__ import annotations

import re

from guided_grammar import automata
from guided_grammar.automata import Dfa
from guided_grammar.bounded import bounded
from guided_grammar.budget import Budget
from guided_grammar.ir import EMPTY, Expr, alt
from guided_grammar.linear import Verbatim, to_expr
from guided_grammar.ranges import ALL, difference
from guided_grammar.regex import search_language
from guided_grammar.schema.emit import Emitter
from guided_grammar.schema.strings import Piece, Strings


def of_language(dfa: Dfa) -> Strings:
    return Strings((Piece(dfa),))


def without(strings: Strings, marks: tuple[str, ...], budget: Budget) -> Strings:
    """The texts that hold none of `marks`, which begin alike; where lengths are bounded, those without their first
    character, which keeps counting them cheap."""
    if any(piece.low > 0 or piece.high is not None for piece in strings.pieces):
        others = difference(ALL, ((ord(marks[0][0]), ord(marks[0][0])),))
        return strings.intersect(of_language(automata.repeated(others, 0, None, budget)), budget)
    return strings.intersect(
        of_language(search_language("|".join(map(re.escape, marks)), budget).complement(budget)), budget
    )


def verbatim(strings: Strings, emitter: Emitter) -> Expr:
    """The texts, character by character."""
    return alt(*(_piece(piece, emitter) for piece in strings.pieces))


def _piece(piece: Piece, emitter: Emitter) -> Expr:
    dfa = piece.dfa
    if dfa.num_states == 1 and len(dfa.edges[0]) == 1:
        return bounded(dfa.edges[0][0][0], None, piece.low, piece.high, EMPTY, emitter.rules)
    return to_expr(piece.materialised(emitter.budget), Verbatim(), emitter.rules, emitter.budget)
