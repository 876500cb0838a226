"""The assertion keywords: what each allows among scalars, arrays and objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from guided_grammar.errors import InvalidConstraint, UnsupportedConstraint
from guided_grammar.schema import values
from guided_grammar.schema.array_keywords import ARRAY_KEYWORDS, array_part
from guided_grammar.schema.arrays import ArrayPart
from guided_grammar.schema.dialect import Draft
from guided_grammar.schema.document import Node
from guided_grammar.schema.formats import KNOWN_FORMATS
from guided_grammar.schema.formula import FALSE
from guided_grammar.schema.numbers import Numbers
from guided_grammar.schema.object_keywords import OBJECT_KEYWORDS, object_part
from guided_grammar.schema.objects import ObjectPart
from guided_grammar.schema.reading import applies, count, exactly, fraction
from guided_grammar.schema.strings import Strings
from guided_grammar.schema.values import Values

if TYPE_CHECKING:
    from guided_grammar.schema.expand import Expander

_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def scalars(expander: Expander, node: Node) -> Values:
    """`type`, `enum`, `const` and the keywords of numbers and strings."""
    result = _types(node)
    if applies(node, "enum"):
        options = node.schema["enum"]
        if not isinstance(options, list):
            raise InvalidConstraint("must be an array", keyword="enum", path=node.path)
        with expander.budget.places.at("enum", node.path):
            result = values.conjoin(result, constants(expander, options, "enum", node), expander.budget)
    if applies(node, "const"):
        one = constants(expander, [node.schema["const"]], "const", node)
        result = values.conjoin(result, one, expander.budget)
    numbers, strings = result.numbers, result.strings
    if not numbers.is_empty():
        numbers = _numbers(expander, node, numbers)
    if not strings.is_empty():
        strings = _strings(expander, node, strings)
    return replace(result, numbers=numbers, strings=strings)


def _types(node: Node) -> Values:
    if "type" not in node.schema:
        return values.ALL
    names = node.schema["type"]
    result = values.NONE
    for name in names if isinstance(names, list) else [names]:
        found = values.of_type(name) if isinstance(name, str) else None
        if found is None:
            raise InvalidConstraint(f"not a type: {name!r}", keyword="type", path=node.path)
        result = Values(
            result.null or found.null,
            result.booleans | found.booleans,
            found.numbers if result.numbers != Numbers.ANY and not found.numbers.is_empty() else result.numbers,
            result.strings if found.strings.is_empty() else found.strings,
            result.arrays or found.arrays,
            result.objects or found.objects,
        )
    return result


def constants(expander: Expander, options: list[Any], keyword: str, node: Node) -> Values:
    """Exactly these JSON values."""
    numbers: list[Fraction] = []
    strings: list[str] = []
    booleans: set[bool] = set()
    lists: list[ArrayPart] = []
    maps: list[ObjectPart] = []
    null = False
    for i, option in enumerate(options):
        path = node.child(keyword, str(i)) if keyword == "enum" else node.child(keyword)
        expander.budget.spend(1, keyword, path)
        match option:
            case None:
                null = True
            case bool():
                booleans.add(option)
            case int() | float():
                numbers.append(exactly(option, keyword, path))
            case str():
                strings.append(option)
            case list():
                items = tuple(expander.constant(item, f"{path}/{n}") for n, item in enumerate(option))
                lists.append(ArrayPart(items, FALSE, len(items), len(items)))
            case dict():
                props = tuple((key, expander.constant(value, f"{path}/{key}")) for key, value in option.items())
                maps.append(ObjectPart(props, frozenset(option), default=FALSE, low=len(props)))
            case _:
                raise InvalidConstraint("must hold JSON values", keyword=keyword, path=path)
    return Values(
        null,
        frozenset(booleans),
        Numbers.of(numbers) if numbers else Numbers.NONE,
        Strings.of(strings, expander.budget) if strings else Strings.NONE,
        tuple(dict.fromkeys(lists)),
        tuple(dict.fromkeys(maps)),
    )


def _numbers(expander: Expander, node: Node, numbers: Numbers) -> Numbers:
    for keyword, strict, upper in (("minimum", "exclusiveMinimum", False), ("maximum", "exclusiveMaximum", True)):
        if keyword in node.schema:
            bound = fraction(node, keyword)
            numbers = numbers.intersect(_half_line(bound, upper, node.schema.get(strict) is True), expander.budget)
        if strict in node.schema and not isinstance(node.schema[strict], bool):
            bound = fraction(node, strict)
            numbers = numbers.intersect(_half_line(bound, upper, True), expander.budget)
    if "multipleOf" in node.schema:
        step = fraction(node, "multipleOf")
        if step <= 0:
            raise InvalidConstraint("must be greater than 0", keyword="multipleOf", path=node.path)
        numbers = numbers.intersect(Numbers.multiple_of(step), expander.budget)
    return numbers


def _half_line(bound: Fraction, upper: bool, is_open: bool) -> Numbers:
    if upper:
        return Numbers.interval(None, False, bound, is_open)
    return Numbers.interval(bound, is_open, None, False)


def _strings(expander: Expander, node: Node, strings: Strings) -> Strings:
    low, high = count(node, "minLength", 0) or 0, count(node, "maxLength")
    if low or high is not None:
        if high is not None and high < low:
            return Strings.NONE
        with expander.budget.places.at("minLength" if high is None else "maxLength", node.path):
            strings = strings.intersect(Strings.length(low, high), expander.budget)
    for keyword in ("pattern", "format"):
        if keyword not in node.schema:
            continue
        value = node.schema[keyword]
        if not isinstance(value, str):
            raise InvalidConstraint("must be a string", keyword=keyword, path=node.path)
        with expander.budget.places.at(keyword, node.path):
            if keyword == "pattern":
                strings = strings.intersect(Strings.pattern(value, expander.budget, node.path), expander.budget)
            elif value in KNOWN_FORMATS:
                strings = strings.intersect(Strings.format(value, expander.budget, node.path), expander.budget)
    return _content(expander, node, strings) if node.draft is Draft.D7 else strings


def _content(expander: Expander, node: Node, strings: Strings) -> Strings:
    """The content keywords: assertions in draft 7 only. Media types other than JSON are left to the application."""
    if str(node.schema.get("contentMediaType")).lower() == "application/json":
        raise UnsupportedConstraint("JSON inside of a string", keyword="contentMediaType", path=node.path)
    if str(node.schema.get("contentEncoding")).lower() == "base64":
        encoded = Strings.pattern(_BASE64, expander.budget, node.path)
        strings = strings.intersect(encoded, expander.budget)
    return strings


def _arrays(expander: Expander, node: Node, given: Values) -> Values:
    limit = replace(values.ALL, arrays=array_part(expander, node))
    return values.conjoin(given, limit, expander.budget)


def _objects(expander: Expander, node: Node, given: Values) -> Values:
    limit = replace(values.ALL, objects=object_part(expander, node))
    return values.conjoin(given, limit, expander.budget)


Handler = Callable[["Expander", Node, Values], Values]
HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(ARRAY_KEYWORDS, _arrays),
    **dict.fromkeys(OBJECT_KEYWORDS, _objects),
}
"""By keyword; one handler takes all of its keywords at once."""
