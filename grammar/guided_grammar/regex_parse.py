"""Parser of regular expressions: ECMAScript's syntax, patterns read as Unicode text.

Dialects: "ecma" for JSON Schema (flag `u`, and where that is an error but the same pattern without it is not, the
meaning it has there); "guided" for `guided_regex`, which adds `(?P<name>...)`, `\\A \\Z \\z \\a` and `[[:alpha:]]`.
Look-around, back-references and inline flags are refused; lazy loops are loops.
"""

from __future__ import annotations

from typing import Literal

from guided_grammar.errors import InvalidConstraint, LimitExceeded, UnsupportedConstraint
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.ranges import Ranges, complement, normalise
from guided_grammar.regex_syntax import Assertion, Choice, Loop, Node, Sequence, Set
from guided_grammar.unicode_classes import DOT, POSIX, SHORTHANDS, unicode_property

Dialect = Literal["ecma", "guided"]

_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_MAX_NESTING = 100


def parse(pattern: str, dialect: Dialect, *, keyword: str, path: str = "", limits: Limits = DEFAULT_LIMITS) -> Node:
    """Raises InvalidConstraint (not a regex), UnsupportedConstraint (not a regular one) or LimitExceeded, with the
    offset in `pattern`."""
    return _Parser(pattern, dialect, keyword, path, limits).parse()


class _Parser:
    def __init__(self, pattern: str, dialect: Dialect, keyword: str, path: str, limits: Limits) -> None:
        self._text, self._dialect, self._keyword, self._path, self._limits = pattern, dialect, keyword, path, limits
        self._at = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise self._invalid("unmatched )")
        return node

    def _invalid(self, reason: str) -> InvalidConstraint:
        where = f"{reason} at offset {self._at} of the regex {_shown(self._text)}"
        return InvalidConstraint(where, keyword=self._keyword, path=self._path)

    def _unsupported(self, what: str) -> UnsupportedConstraint:
        where = f"{what} is not regular: offset {self._at} of the regex {_shown(self._text)}"
        return UnsupportedConstraint(where, keyword=self._keyword, path=self._path)

    def _peek(self, ahead: str = "") -> str:
        """The next character ("" at the end); with `ahead`, whether the text goes on like that."""
        return self._text[self._at : self._at + (len(ahead) or 1)]

    def _take(self, expected: str) -> bool:
        if not self._text.startswith(expected, self._at):
            return False
        self._at += len(expected)
        return True

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            items.append(self._quantified())
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _quantified(self) -> Node:
        start = self._at
        item = self._atom()
        bounds = self._quantifier()
        if bounds is None:
            return item
        if isinstance(item, Assertion) and self._text[start] != "(":
            self._at = start
            raise self._invalid("nothing to repeat")
        self._take("?")
        if self._peek() in ("*", "+", "?") or (self._peek() == "{" and self._counted(consume=False) is not None):
            raise self._invalid("nothing to repeat")
        return Loop(item, *bounds)

    def _quantifier(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        return self._counted() if self._peek() == "{" else None

    def _counted(self, consume: bool = True) -> tuple[int, int | None] | None:
        """`{n}`, `{n,}`, `{n,m}`; None when the brace is a plain character."""
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : max(end, self._at + 1)].partition(",")
        if end < 0 or not _is_number(low) or (high and not _is_number(high)):
            return None
        first = int(low[-18:]) if len(low.lstrip("0")) <= 18 else 10**18
        last = first if not comma else None if not high else min(int(high[-400:]), 10**18)
        if not consume:
            return first, last
        if last is not None and last < first:
            raise self._invalid("numbers out of order in {} quantifier")
        for bound in (first, last or 0):
            if bound > self._limits.repeat:
                raise LimitExceeded(
                    "regex repetition", self._limits.repeat, bound, keyword=self._keyword, path=self._path
                )
        self._at = end + 1
        return first, last

    def _atom(self) -> Node:
        char = self._peek()
        if char in ("*", "+", "?") or (char == "{" and self._counted(consume=False) is not None):
            raise self._invalid("nothing to repeat")
        if char == "(":
            return self._group()
        if char == "[":
            return Set(self._class())
        if char == "\\":
            return self._escape()
        self._at += 1
        if char == "^":
            return Assertion.START
        if char == "$":
            return Assertion.END
        return Set(DOT) if char == "." else self._literal(ord(char))

    def _literal(self, code: int) -> Set:
        return Set(normalise(((code, code),)))

    def _group(self) -> Node:
        self._at += 1
        if self._take("?"):
            self._group_kind()
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise LimitExceeded("regex nesting", _MAX_NESTING, None, keyword=self._keyword, path=self._path)
        node = self._choice()
        self._depth -= 1
        if not self._take(")"):
            raise self._invalid("missing )")
        return node

    def _group_kind(self) -> None:
        """After `(?`: accepts a non-capturing or named group."""
        if self._take(":"):
            return
        for sign in ("=", "!", "<=", "<!"):
            if self._peek(sign) == sign:
                raise self._unsupported("look-around")
        named = self._take("<") or (self._dialect == "guided" and self._take("P<"))
        end = self._text.find(">", self._at)
        if not named or not self._text[self._at : end].replace("$", "_").isidentifier():
            raise self._invalid("invalid group")
        self._at = end + 1

    def _escape(self) -> Node:
        self._at += 1
        char = self._peek()
        if char in ("b", "B"):
            self._at += 1
            return Assertion.BOUNDARY if char == "b" else Assertion.NO_BOUNDARY
        if self._dialect == "guided" and char in ("A", "Z", "z"):
            self._at += 1
            return Assertion.START if char == "A" else Assertion.END
        if char in ("k", *"123456789"):
            raise self._unsupported("a back-reference")
        shorthand = self._shorthand()
        return self._literal(self._character(in_class=False)) if shorthand is None else Set(shorthand)

    def _shorthand(self) -> Ranges | None:
        """After a backslash: `d D w W s S p{} P{}`, None for anything else."""
        char = self._peek()
        if char.lower() in SHORTHANDS and char:
            self._at += 1
            found = SHORTHANDS[char.lower()]
        elif char in ("p", "P") and self._text.startswith("{", self._at + 1):
            end = self._text.find("}", self._at)
            property_ = unicode_property(self._text[self._at + 2 : end]) if end > 0 else None
            if property_ is None:
                raise self._unknown_property(end)
            self._at, found = end + 1, property_
        else:
            return None
        return found if char.islower() else complement(found)

    def _unknown_property(self, end: int) -> UnsupportedConstraint:
        name = self._text[self._at - 1 : end + 1 if end > 0 else len(self._text)]
        reason = f"the Unicode property {_shown(name)} is not known"
        return UnsupportedConstraint(reason, keyword=self._keyword, path=self._path)

    def _character(self, in_class: bool) -> int:
        """After a backslash: the one character meant."""
        char = self._peek()
        if char == "":
            raise self._invalid("\\ at the end")
        self._at += 1
        if char == "0" and self._peek().isdecimal():
            raise self._invalid("octal escape")
        if char in _CONTROLS:
            return _CONTROLS[char]
        if self._dialect == "guided" and char == "a":
            return 7
        if in_class and char == "b":
            return 8
        if char == "c" and self._peek().isascii() and self._peek().isalpha():
            self._at += 1
            return ord(self._text[self._at - 1]) % 32
        if char == "x":
            return self._hex(2)
        if char == "u":
            return self._unicode()
        if char.isascii() and char.isalnum():
            raise self._invalid(f"unknown escape \\{char}")
        return ord(char)

    def _hex(self, digits: int) -> int:
        text = self._text[self._at : self._at + digits]
        if len(text) < digits or not _is_hex(text):
            raise self._invalid("invalid escape")
        self._at += digits
        return int(text, 16)

    def _unicode(self) -> int:
        if self._peek() == "{":
            end = self._text.find("}", self._at)
            digits = self._text[self._at + 1 : max(end, self._at + 1)].lstrip("0") or "0"
            if end < 0 or not _is_hex(digits) or len(digits) > 6 or int(digits, 16) > 0x10FFFF:
                raise self._invalid("invalid escape")
            self._at = end + 1
            return int(digits, 16)
        code = self._hex(4)
        low = self._text[self._at + 2 : self._at + 6]
        if (
            0xD800 <= code < 0xDC00
            and self._peek("\\u") == "\\u"
            and _is_hex(low)
            and low[:2].lower() in _LOW_SURROGATES
        ):
            self._at += 6
            return 0x10000 + ((code - 0xD800) << 10) + (int(low, 16) - 0xDC00)
        return code

    def _class(self) -> Ranges:
        self._at += 1
        negated = self._take("^")
        parts: list[tuple[int, int]] = []
        while not self._take("]"):
            first = self._class_item()
            if (
                isinstance(first, int)
                and self._peek() == "-"
                and self._text[self._at + 1 : self._at + 2] not in ("]", "")
            ):
                parts += self._range(first)
            else:
                parts += ((first, first),) if isinstance(first, int) else first
        return complement(normalise(parts)) if negated else normalise(parts)

    def _range(self, first: int) -> Ranges:
        """The rest of `a-z`; a class at the right end makes the dash a plain character."""
        self._at += 1
        last = self._class_item()
        if not isinstance(last, int):
            return ((first, first), (0x2D, 0x2D), *last)
        if last < first:
            raise self._invalid("range out of order in character class")
        return ((first, last),)

    def _class_item(self) -> int | Ranges:
        if self._peek() == "":
            raise self._invalid("missing ]")
        if self._dialect == "guided" and self._peek("[:") == "[:":
            name, end = self._text[self._at + 2 :].partition(":]")[0], self._text.find(":]", self._at)
            if end > 0 and name.lstrip("^") in POSIX:
                self._at = end + 2
                found = normalise(POSIX[name.lstrip("^")])
                return complement(found) if name.startswith("^") else found
        if self._take("\\"):
            shorthand = self._shorthand()
            return self._character(in_class=True) if shorthand is None else shorthand
        self._at += 1
        return ord(self._text[self._at - 1])


_LOW_SURROGATES = ("dc", "dd", "de", "df")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _is_hex(text: str) -> bool:
    return bool(text) and all(char in "0123456789abcdefABCDEF" for char in text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
