"""Nested containers as flat lists of leaves, and back.

Containers are dicts (and OrderedDict, defaultdict), lists, tuples, named tuples, deques, and types that were
registered; everything else, None included, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "LeafSpec",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]

_REGISTERED: dict[type, tuple[Callable[[Any], tuple[list[Any], Any]], Callable[[Iterable[Any], Any], Any]]] = {}


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[list[Any], Any]], unflatten_fn: Callable[[Iterable[Any], Any], Any]
) -> None:
    """Makes a type a container: ``flatten_fn(x)`` gives children and a context, ``unflatten_fn(children, context)``
    the object again. ValueError when the type is registered already."""
    if cls in _REGISTERED:
        raise ValueError(f"{cls} is already registered as pytree node")
    _REGISTERED[cls] = (flatten_fn, unflatten_fn)


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


class TreeSpec:
    """The containers around leaves: everything of a tree but its leaves."""

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_leaves: int = sum(c.num_leaves for c in children_specs) if type is not None else 1

    def is_leaf(self) -> bool:
        """Whether this is a leaf."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context!r}, {self.children_specs!r})"


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


def _children(tree: Any) -> tuple[Any, list[Any]] | None:
    """(context, children) of a container, or None for a leaf."""
    cls = type(tree)
    if cls in _REGISTERED:
        children, context = _REGISTERED[cls][0](tree)
        return context, list(children)
    if cls in (dict, OrderedDict):
        return list(tree), list(tree.values())
    if cls is defaultdict:
        return (tree.default_factory, list(tree)), list(tree.values())
    if cls is deque:
        return tree.maxlen, list(tree)
    if (
        cls in (list, tuple)
        or _is_named_tuple(tree)
        or (isinstance(tree, tuple) and hasattr(tree, "n_sequence_fields"))
    ):
        return None, list(tree)
    return None


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure around them."""
    leaves: list[Any] = []

    def walk(node: Any) -> TreeSpec:
        found = None if is_leaf is not None and is_leaf(node) else _children(node)
        if found is None:
            leaves.append(node)
            return LeafSpec()
        context, children = found
        return TreeSpec(type(node), context, [walk(c) for c in children])

    spec = walk(tree)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of this structure with these leaves. ValueError when their number is another."""
    items = list(leaves)
    if len(items) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: the structure has {treespec.num_leaves} leaves, got {len(items)}")
    position = 0

    def build(spec: TreeSpec) -> Any:
        nonlocal position
        if spec.type is None:
            position += 1
            return items[position - 1]
        children = [build(c) for c in spec.children_specs]
        cls = spec.type
        if cls in _REGISTERED:
            return _REGISTERED[cls][1](children, spec.context)
        if cls in (dict, OrderedDict):
            return cls(zip(spec.context, children, strict=True))
        if cls is defaultdict:
            return defaultdict(spec.context[0], zip(spec.context[1], children, strict=True))
        if cls is deque:
            return deque(children, maxlen=spec.context)
        if hasattr(cls, "_fields"):
            return cls(*children)
        return cls(children)

    return build(treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure without the leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with ``func`` applied to each leaf (and the leaves of the other trees at the same place)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_flatten_as(r, spec) for r in rests]
    return tree_unflatten([func(*items) for items in zip(leaves, *others, strict=True)], spec)


def _flatten_as(tree: Any, spec: TreeSpec) -> list[Any]:
    if spec.type is None:
        return [tree]
    found = _children(tree)
    if found is None or type(tree) is not spec.type or len(found[1]) != len(spec.children_specs):
        raise ValueError(f"tree_map: the trees differ; expected {spec}, got {type(tree).__name__}")
    return [
        leaf for child, part in zip(found[1], spec.children_specs, strict=True) for leaf in _flatten_as(child, part)
    ]


def tree_map_only(cls: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """`tree_map` for leaves of one type; others stay."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, cls) else leaf, tree)


def tree_all(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Whether the predicate holds for every leaf."""
    return all(predicate(leaf) for leaf in tree_leaves(tree))


def tree_any(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Whether the predicate holds for some leaf."""
    return any(predicate(leaf) for leaf in tree_leaves(tree))


def broadcast_prefix(prefix: Any, spec: TreeSpec) -> list[Any] | None:
    """A value for each leaf of ``spec`` from a tree whose leaves may stand for whole subtrees; None when it does not
    fit."""
    if spec.type is None:
        return [prefix]
    found = _children(prefix)
    if found is None:
        return [prefix] * spec.num_leaves
    same_kind = type(prefix) is spec.type or (
        isinstance(prefix, (tuple, list)) and issubclass(spec.type, (tuple, list))
    )
    if (
        not same_kind
        or len(found[1]) != len(spec.children_specs)
        or (isinstance(found[0], list) and found[0] != spec.context)
    ):
        return None
    result: list[Any] = []
    for child, part in zip(found[1], spec.children_specs, strict=True):
        values = broadcast_prefix(child, part)
        if values is None:
            return None
        result += values
    return result
