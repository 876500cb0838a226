"""The longest answer a grammar allows."""

from __future__ import annotations

from guided_grammar.ir import Alt, Chars, Dispatch, Expr, Ref, Repeat, Rules, Seq, Text
from guided_grammar.reach import reach


def longest(rules: Rules, root: Expr) -> int | None:
    """UTF-8 bytes of the longest text of `root`; None when there is none or a rule it needs is recursive."""
    found = reach(rules, root)
    sizes: dict[str, float] = {name: float("-inf") for name in rules if name not in found.alive}
    for name in found.order:
        sizes[name] = _size(rules.get(Ref(name)), sizes)
    size = _size(root, sizes)
    return int(size) if size < float("inf") else None


def _size(expr: Expr, sizes: dict[str, float]) -> float:
    """-inf: no text at all. A rule without a size yet is one that is being measured: a recursion."""
    match expr:
        case Text(text):
            return len(text.encode())
        case Chars(ranges):
            return len(chr(ranges[-1][1]).encode())
        case Ref(name):
            return sizes.get(name, float("inf"))
        case Seq(items):
            parts = [_size(item, sizes) for item in items]
            return float("-inf") if float("-inf") in parts else sum(parts)
        case Alt(options):
            return max((_size(option, sizes) for option in options), default=float("-inf"))
        case Repeat(item, low, high):
            return _repeated(_size(item, sizes), low, high)
        case Dispatch():
            return float("inf")


def _repeated(size: float, low: int, high: int | None) -> float:
    if size == float("-inf"):
        return 0 if low == 0 else size
    if size == 0 or high == 0:
        return 0
    return float("inf") if high is None else size * high
