"""A schema document: its resources, anchors and references (RFC 3986 and RFC 6901 inside one document)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from guided_grammar.budget import Budget
from guided_grammar.errors import InvalidConstraint, LimitExceeded, UnsupportedConstraint
from guided_grammar.schema.dialect import Draft, draft_of, known, subschemas


@dataclass(frozen=True)
class Node:
    """A schema at its place. base: URI of its resource. scope: dynamic scope, outermost resource first."""

    schema: Any
    path: str
    base: str
    draft: Draft
    scope: tuple[str, ...] = ()

    def child(self, *steps: str) -> str:
        """The path of a value below this schema."""
        return self.path + "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def _mentions_unevaluated(schema: Any, budget: Budget) -> bool:
    stack = [schema]
    while stack:
        value = stack.pop()
        budget.spend()
        if isinstance(value, dict):
            if "unevaluatedItems" in value or "unevaluatedProperties" in value:
                return True
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return False


class Document:
    """Finds every embedded resource and anchor of `schema` once. Nothing outside of it is ever read.

    has_marks: whether `unevaluatedItems` or `unevaluatedProperties` occur, so that sets must carry what was evaluated.
    """

    def __init__(self, schema: Any, budget: Budget) -> None:
        self._budget = budget
        self.has_marks = _mentions_unevaluated(schema, budget)
        self._resources: dict[str, Node] = {}
        self._anchors: dict[tuple[str, str], Node] = {}
        self._dynamic: dict[tuple[str, str], Node] = {}
        self._recursive: set[str] = set()
        self._nodes: dict[str, Node] = {}
        self.root = Node(schema, "", "", Draft.D2020)
        self._scan(self.root)
        self.root = self._nodes[""]
        self._resources.setdefault("", self.root)

    def _scan(self, root: Node) -> None:
        stack = [(root, 0)]
        while stack:
            node, depth = stack.pop()
            self._budget.spend()
            if depth > self._budget.limits.json_depth:
                raise LimitExceeded("schema depth", self._budget.limits.json_depth, None, path=node.path)
            node = self._enter(node)
            self._nodes[node.path] = node
            if isinstance(node.schema, dict):
                for steps, schema in subschemas(node.schema):
                    stack.append((Node(schema, node.child(*steps), node.base, node.draft), depth + 1))

    def _enter(self, node: Node) -> Node:
        """The node with its own draft and base URI; records what can be referred to."""
        schema = node.schema
        if not isinstance(schema, dict):
            return node
        draft, base = node.draft, node.base
        if "$schema" in schema:
            draft = draft_of(schema["$schema"], node.path) or draft
        name = schema.get("$id" if draft >= Draft.D6 else "id", schema.get("$id") if node.path == "" else None)
        overridden = draft <= Draft.D7 and "$ref" in schema
        uri, fragment = urldefrag(name) if isinstance(name, str) and not overridden else ("", "")
        if uri:
            base = urljoin(base, uri)
        node = Node(schema, node.path, base, draft)
        if uri or node.path == "":
            self._resources.setdefault(base, node)
            if schema.get("$recursiveAnchor") is True:
                self._recursive.add(base)
        if fragment:
            self._anchors[(base, fragment)] = node
        for keyword, table in (("$anchor", self._anchors), ("$dynamicAnchor", self._dynamic)):
            anchor = schema.get(keyword)
            if isinstance(anchor, str) and known(keyword, draft):
                self._anchors[(base, anchor)] = table[(base, anchor)] = node
        return node

    @property
    def is_dynamic(self) -> bool:
        """Whether references may depend on the way that led to them."""
        return bool(self._dynamic or self._recursive)

    def at(self, parent: Node, steps: tuple[str, ...], schema: Any) -> Node:
        """The node of a subschema of `parent`."""
        path = parent.child(*steps)
        found = self._nodes.get(path) or Node(schema, path, parent.base, parent.draft)
        return self.scoped(found, parent)

    def scoped(self, node: Node, parent: Node) -> Node:
        """`node` as it is reached from `parent`: with the dynamic scope of both."""
        scope = parent.scope
        if self.is_dynamic and node.base not in scope:
            scope = (*scope, node.base)
        return Node(node.schema, node.path, node.base, node.draft, scope)

    def resolve(self, node: Node, keyword: str) -> Node:
        """The target of `$ref`, `$dynamicRef` or `$recursiveRef` of `node`. Raises for what is not in the document."""
        reference = node.schema[keyword]
        if not isinstance(reference, str):
            raise InvalidConstraint("must be a string", keyword=keyword, path=node.path)
        target = self._static(node, reference, keyword)
        if keyword == "$dynamicRef":
            target = self._dynamically(node, target, unquote(urldefrag(reference)[1]))
        elif keyword == "$recursiveRef" and target.base in self._recursive:
            outer = next((base for base in node.scope if base in self._recursive), target.base)
            target = self._resources[outer]
        return self.scoped(target, node)

    def _dynamically(self, node: Node, target: Node, anchor: str) -> Node:
        if (target.base, anchor) not in self._dynamic:
            return target
        for base in node.scope:
            if (base, anchor) in self._dynamic:
                return self._dynamic[(base, anchor)]
        return target

    def _static(self, node: Node, reference: str, keyword: str) -> Node:
        base, fragment = urldefrag(urljoin(node.base, reference) if node.base or "#" not in reference else reference)
        if reference.startswith("#"):
            base = node.base
        resource = self._resources.get(base) or self._resources.get(base + "#")
        if resource is None:
            raise UnsupportedConstraint(
                f"refers outside of the document: {reference!r}", keyword=keyword, path=node.path
            )
        fragment = unquote(fragment)
        if fragment == "" or fragment.startswith("/"):
            return self._pointer(resource, fragment, node, keyword)
        found = self._anchors.get((base, fragment))
        if found is None:
            raise InvalidConstraint(f"no schema is named {reference!r}", keyword=keyword, path=node.path)
        return found

    def _pointer(self, resource: Node, pointer: str, origin: Node, keyword: str) -> Node:
        """Follow a JSON pointer, keeping the innermost known schema's base and draft."""
        value, node, path = resource.schema, resource, resource.path
        for raw in pointer.split("/")[1:]:
            step = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                raise InvalidConstraint(f"nothing at {pointer!r}", keyword=keyword, path=origin.path)
            path += "/" + step.replace("~", "~0").replace("/", "~1")
            node = self._nodes.get(path, node)
        if node.path == path:
            return node
        if not isinstance(value, (dict, bool)):
            raise InvalidConstraint(f"{pointer!r} is not a schema", keyword=keyword, path=origin.path)
        self._scan(Node(value, path, node.base, node.draft))
        return self._nodes[path]
