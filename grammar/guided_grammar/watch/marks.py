"""Marks in grammar text: where the values that follow must differ, which no grammar can say.

A mark is a rule of its own behind the bracket that opens an array or object. In the grammar that masks are made from
it writes nothing; in the shadow grammar (`shadow`) it writes two private characters, so that reading an answer with the
shadow tells which containers are watched.
"""

from __future__ import annotations

import re
from enum import IntFlag

from guided_grammar.ir import Ref, Rules, text


class Watch(IntFlag):
    """What must differ in a container, and how far it has to be looked after.

    KEYS: the names of an object; without it the items of an array. CHECK: a beginning may be left without any ending
    that is still free. VALUE: equal items may be spelled differently. GROWS: those that may are arrays and objects
    that can always go on, so that a beginning of one is never at a dead end. ENDLESS: there is always an item left.
    SEARCH: what may follow a beginning cannot be told from what followed it before, but has to be asked again.
    """

    ITEMS = 0
    KEYS = 1
    CHECK = 2
    VALUE = 4
    GROWS = 8
    ENDLESS = 16
    SEARCH = 32


_FIRST, _FIRST_SITE, _LAST_SITE = 0xE000, 0xE100, 0xF8FF
_HINT = "watch"
_RULE = re.compile(rf'^({_HINT}_\d+ ::= )"\\u(e0[0-3][0-9a-f])\\u[ef][0-9a-f]{{3}}"$', re.MULTILINE)


def mark(rules: Rules, watch: Watch, site: int) -> Ref:
    """A new rule for the mark; share it, a rule that equals it by chance must not stand for it.

    site: a number by which containers are told apart whose items are of different kinds.
    """
    ref = rules.reserve(_HINT)
    rules.define(ref, text(chr(_FIRST + watch) + chr(min(_FIRST_SITE + site, _LAST_SITE))))
    return ref


def watches(grammar: str) -> tuple[Watch, ...]:
    """The kinds of marks in grammar text of `to_ebnf`."""
    return tuple(sorted({Watch(int(found[2], 16) - _FIRST) for found in _RULE.finditer(grammar)}))


def without_marks(grammar: str) -> str:
    """The same grammar, its marks writing nothing."""
    return _RULE.sub(r'\1""', grammar)


def written(watch: Watch) -> bytes:
    """What a mark writes in the shadow grammar, before the character of its site."""
    return chr(_FIRST + watch).encode()
