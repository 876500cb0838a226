"""How a character of a string value is written in JSON: itself, or its one canonical escape.

Canonical: `\\"`, `\\\\`, `\\b \\f \\n \\r \\t`, `\\u00xx` (lower case) for other control characters, else itself.
One spelling per character, so the texts of two keys are equal exactly when the keys are.
"""

from __future__ import annotations

import json

from guided_grammar.ir import Expr, Rules, alt, chars, seq, text
from guided_grammar.ranges import Ranges, complement, difference, intersect

ESCAPED: Ranges = ((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
PLAIN: Ranges = complement(ESCAPED)
QUOTE: Expr = text('"')

_SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}


class JsonWriter:
    """Writes characters and the end of a JSON string; the opening quote is the caller's."""

    end = QUOTE

    def plain(self, ranges: Ranges) -> Ranges:
        """The characters that are written as themselves."""
        return intersect(ranges, PLAIN)

    def escaped(self, ranges: Ranges, rules: Rules) -> Expr | None:
        """One of the other characters, None if there are none."""
        codes = [code for low, high in difference(ranges, PLAIN) for code in range(low, high + 1)]
        if not codes:
            return None
        after = alt(*_after_backslash(codes))
        return seq(text("\\"), after if len(codes) == 1 else rules.add(after, "escape"))


def _after_backslash(codes: list[int]) -> list[Expr]:
    short = chars((ord(_SHORT[code]), ord(_SHORT[code])) for code in codes if code in _SHORT)
    long = []
    for high in (0, 1):
        last = (ord(f"{code & 15:x}") for code in codes if code not in _SHORT and code >> 4 == high)
        long.append(seq(text(f"u00{high}"), chars((digit, digit) for digit in last)))
    return [short, *long]


def quoted(value: str) -> Expr:
    """The canonical JSON text of one string."""
    return text(json.dumps(value, ensure_ascii=False))
