"""Marks in grammar text: where the values that follow must differ, which no grammar can say.

A mark is a rule of its own behind the bracket that opens an array or object. In the grammar that masks are made from
it writes nothing; in the shadow grammar (`shadow`) it writes one private character, so that reading an answer with the
shadow tells which containers are watched.
"""

from __future__ import annotations

import re
from enum import IntFlag

from guided_grammar.ir import Ref, Rules, text


class Watch(IntFlag):
    """What must differ in a container, and how far it has to be looked after.

    KEYS: the names of an object; without it the items of an array. CHECK: a beginning may be left without any ending
    that is still free, so that beginnings of used items are looked into. VALUE: equal items may be spelled differently.
    PLACED: the items of different places may differ in kind. ENDLESS: there is always an item left that is free.
    """

    ITEMS = 0
    KEYS = 1
    CHECK = 2
    VALUE = 4
    PLACED = 8
    ENDLESS = 16


_FIRST = 0xE000
_HINT = "watch"
_RULE = re.compile(rf'^({_HINT}_\d+ ::= )"\\u(e0[01][0-9a-f])"$', re.MULTILINE)


def mark(rules: Rules, watch: Watch) -> Ref:
    """A new rule for the mark; share it, a rule that equals it by chance must not stand for it."""
    ref = rules.reserve(_HINT)
    rules.define(ref, text(chr(_FIRST + watch)))
    return ref


def watches(grammar: str) -> tuple[Watch, ...]:
    """The kinds of marks in grammar text of `to_ebnf`."""
    return tuple(sorted({Watch(int(found[2], 16) - _FIRST) for found in _RULE.finditer(grammar)}))


def without_marks(grammar: str) -> str:
    """The same grammar, its marks writing nothing."""
    return _RULE.sub(r'\1""', grammar)


def written(watch: Watch) -> bytes:
    """What the mark writes in the shadow grammar."""
    return chr(_FIRST + watch).encode()
