"""The formats of JSON Schema as regular expressions that match a whole value, built up like the ABNF of their RFCs."""

from __future__ import annotations


def _any_of(*options: str) -> str:
    return f"(?:{'|'.join(options)})"


# RFC 3339: calendar dates of the years 0001 to 9999, leap years by the Gregorian rule.
_YEAR = _any_of("[0-9]{3}[1-9]", "[0-9]{2}[1-9]0", "[0-9][1-9]00", "[1-9]000")
_BY_FOUR = "(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = _any_of(f"[0-9]{{2}}{_BY_FOUR}", f"{_BY_FOUR}00")
_MONTH_DAY = _any_of(
    "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)",
    "02-(?:0[1-9]|1[0-9]|2[0-8])",
)
_DATE = _any_of(f"{_YEAR}-{_MONTH_DAY}", f"{_LEAP_YEAR}-02-29")

_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]+)?"
_OFFSET = _any_of("[Zz]", f"[+-]{_HOUR}:{_SIXTY}")


def _leap_seconds() -> str:
    """Second 60 where the time is 23:59 in UTC, for offsets of whole quarters of an hour."""
    options = [f"23:59:60{_FRACTION}[Zz]"]
    for local in range(14, 24 * 60, 15):
        east, west = (local + 1) % (24 * 60), 23 * 60 + 59 - local
        offsets = f"[+]{east // 60:02}:{east % 60:02}|-{west // 60:02}:{west % 60:02}"
        options.append(f"{local // 60:02}:{local % 60:02}:60{_FRACTION}(?:{offsets})")
    return _any_of(*options)


_TIME = _any_of(f"{_HOUR}:{_SIXTY}:{_SIXTY}{_FRACTION}{_OFFSET}", _leap_seconds())

# RFC 3339, appendix A.
_DURATION_TIME = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DURATION_DATE = "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"
_DURATION = f"P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|[0-9]+W)"

# RFC 3986 (and RFC 3987, whose characters beyond ASCII are the parameter `wide`).
_OCTET = "(?:[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def _ipv6() -> str:
    group = "[0-9A-Fa-f]{1,4}"
    last = _any_of(f"{group}:{group}", _IPV4)
    options = [f"(?:{group}:){{6}}{last}", f"::(?:{group}:){{5}}{last}"]
    for before in range(1, 6):
        head = f"(?:{group}(?::{group}){{0,{before - 1}}})?"
        after = 5 - before
        options.append(f"{head}::(?:{group}:){{{after}}}{last}")
    options.append(f"(?:{group}(?::{group}){{0,5}})?::{group}")
    options.append(f"(?:{group}(?::{group}){{0,6}})?::")
    return _any_of(*options)


_IPV6 = _ipv6()
_ESCAPED = "%[0-9A-Fa-f]{2}"
_PLANES = "".join(f"\\u{{{plane:x}{'1' if plane == 14 else '0'}000}}-\\u{{{plane:x}fffd}}" for plane in range(1, 15))
_UCS = rf"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef{_PLANES}"
_PRIVATE = r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}"
_UNRESERVED, _DELIMITERS = "A-Za-z0-9._~-", "!$&'()*+,;="


class _Resource:
    """URI references, with `wide` and `private` characters those of IRIs.

    host, path, fragment, query: the characters, but for `%`, of a host name, of a path with its slashes, and so on.
    """

    def __init__(self, wide: str, private: str) -> None:
        self.host = f"{wide}{_DELIMITERS}{_UNRESERVED}"
        self.path = f":@/{self.host}"
        self.fragment = f"?{self.path}"
        self.query = f"{private}{self.fragment}"
        name = f"(?:[{self.host}]|{_ESCAPED})"
        user = f"(?:[:{self.host}]|{_ESCAPED})"
        part = f"(?:[:@{self.host}]|{_ESCAPED})"
        tail = f"(?:[{self.fragment}]|{_ESCAPED})"
        query = f"(?:[{self.query}]|{_ESCAPED})"
        first = f"(?:[@{self.host}]|{_ESCAPED})"
        future = f"[Vv][0-9A-Fa-f]+\\.[:{_DELIMITERS}{_UNRESERVED}]+"
        host = _any_of(rf"\[(?:{_IPV6}|{future})\]", f"{name}*")
        authority = f"//(?:{user}*@)?{host}(?::[0-9]*)?(?:/{part}*)*"
        absolute = f"/(?:{part}+(?:/{part}*)*)?"
        end = rf"(?:\?{query}*)?(?:#{tail}*)?"
        rootless = f"{part}+(?:/{part}*)*"
        relative = f"{first}+(?:/{part}*)*"
        self.full = f"[A-Za-z][A-Za-z0-9+.-]*:(?:{authority}|{absolute}|{rootless}|){end}"
        self.reference = _any_of(self.full, f"(?:{authority}|{absolute}|{relative}|){end}")


_URI, _IRI = _Resource("", ""), _Resource(_UCS, _PRIVATE)
RESOURCES = {"uri": _URI, "uri-reference": _URI, "iri": _IRI, "iri-reference": _IRI}

# RFC 6570, without the operators that it reserves for extensions.
_VARIABLE = rf"(?:[A-Za-z0-9_]|{_ESCAPED})(?:\.?(?:[A-Za-z0-9_]|{_ESCAPED}))*(?::[1-9][0-9]{{0,3}}|\*)?"
_TEMPLATE_TEXT = rf"[!#$&'(-;=?-\[\]_a-z~{_UCS}{_PRIVATE}]"
_TEMPLATE = rf"(?:{_TEMPLATE_TEXT}|{_ESCAPED}|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"

# RFC 1123, RFC 1035.
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOSTNAME = rf"{_LABEL}(?:\.{_LABEL})*"
HOSTNAME_LENGTH = 253
RESERVED = r"(?:[^@]*\.)?[^.@]{2}--[^@]*"
"""Host names with a label that RFC 5890 reserves, `xn--` among them: which of them are valid is no regular language."""

# RFC 5321; RFC 6531 adds characters beyond ASCII. Address literals: IPv4 and IPv6, the only registered ones.
LITERAL = rf"(?:{_IPV4}|IPv6:{_IPV6})\]"
ATOM, QUOTED = "A-Za-z0-9!#$%&'*+/=?^_`{|}~-", r" !#-;=?-\[\]-~"
ANY_WIDE = r"\u0080-\u{10ffff}"
WIDE_LABEL = r"a-z0-9\u00df-\u00f6\u00f8-\u00ff\u03ac-\u03ce\u0430-\u045f\u3041-\u3096\u4e00-\u9fa5\uac00-\ud7a3"
"""What IDNA allows everywhere in a label, of scripts written from left to right."""


def _email(wide: str, label: str) -> str:
    atom, quoted = f"[{wide}{ATOM}]+", rf'"[{wide}{QUOTED}]*"'
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@(?:{label}(?:\.{label})*|\[{LITERAL})"


EMAIL_LENGTH = 254
EMAIL_RESERVED = rf"[\s\S]*@{RESERVED}"
_THREE_LABELS = r"(?:[^.@]*\.){0,2}[^.@]*"
EMAIL_BOUNDS = {
    "email": r'(?:[^"@]{1,64}|"[^"]{0,62}")@[\s\S]*',
    "idn-email": rf'(?:[.{ATOM}]{{1,64}}|"[{QUOTED}]{{0,62}}"|[^"@]{{1,16}}|"[^"]{{0,14}}")@(?:[!-~]*|{_THREE_LABELS})',
}
"""At most 64 octets stand before the `@` (a character beyond ASCII may take four), and 253 after it (a label 63)."""


_POINTER = "(?:/(?:[^~/]|~[01])*)*"


def _counts() -> str:
    """What stands in the braces of a quantifier: bounds in order, told from their digits; of two below 100 the tens."""
    digit, tens = "[0-9]", "[1-9][0-9]"
    below = [f"{low},[{low}-9]" for low in range(10)]
    above = [f"{low}{digit},[{low + 1}-9]{digit}" for low in range(1, 9)]
    return _any_of(f"(?:{digit}|{tens}{digit}?),?", f"{digit},{tens}{digit}?", f"{tens},{tens}{digit}", *below, *above)


def _regex(depth: int) -> str:
    """ECMAScript regexes valid with and without the flag u: no names or look-around, `depth` nested groups.

    Few states rather than many regexes: every state of an automaton over almost all characters is slow to compile.
    """
    escape = r"\\(?:[\^$\\.*+?()\[\]{}|/dDwWsStnvfr]|c[A-Za-z])"
    klass = rf"\[\^?-?(?:0-9|A-Z|a-z|[^\\\]\[\-^]|{escape}|\\-)*-?\]"
    atom = rf"[^\\^$.*+?()\[\]{{}}|]|\.|{escape}|{klass}"
    if depth:
        atom += rf"|\((?:\?:)?{_regex(depth - 1)}\)"
    return rf"(?:[\^$|]|\\[bB]|(?:{atom})(?:(?:[*+?]|\{{{_counts()}\}})\??)?)*"


PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}[Tt]{_TIME}",
    "duration": _DURATION,
    "uuid": "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI.full,
    "uri-reference": _URI.reference,
    "iri": _IRI.full,
    "iri-reference": _IRI.reference,
    "uri-template": _TEMPLATE,
    "email": _email("", _LABEL),
    "idn-email": _email(ANY_WIDE, _any_of(_LABEL, f"[{WIDE_LABEL}]{{1,10}}")),
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
    "regex": _regex(1),
}
"""What a value may be written as; all that the format allows, except for the formats of `WIDER`."""

_LEAP_ANYWHERE = _any_of(_TIME, f"{_HOUR}:{_SIXTY}:60{_FRACTION}{_OFFSET}")
WIDER = {
    "time": _LEAP_ANYWHERE,
    "date-time": f"{_DATE}[Tt]{_LEAP_ANYWHERE}",
    "email": r"[\s\S]*@[\s\S]*",
    "idn-email": r"[\s\S]*@[\s\S]*",
    "regex": r"[\s\S]*",
}
"""A superset of every format that `PATTERNS` only has a part of; what its negation excludes."""
