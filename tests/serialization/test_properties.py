"""Properties of save and load over generated objects and tensors."""

from __future__ import annotations

import math
import pickle
from typing import Any

from checkpoints import loaded, same, saved, shares
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight._pickle_reader import Reader
from rushlight._safe_constructors import with_user_globals


def exactly(a: Any, b: Any) -> None:
    """Raises unless two objects are equal in type, order and sign of zero, all the way down."""
    assert type(a) is type(b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            exactly(x, y)
    elif isinstance(a, dict):
        exactly(list(a.items()), list(b.items()))
    elif isinstance(a, (set, frozenset)):
        assert a == b
        assert {(type(x), x) for x in a} == {(type(x), x) for x in b}
    else:
        assert repr(a) == repr(b)


KEYS = st.one_of(st.integers(), st.text(max_size=5), st.booleans(), st.tuples(st.integers(), st.text(max_size=3)))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(),
    st.binary(),
    st.binary().map(bytearray),
    st.sets(KEYS, max_size=4),
    st.frozensets(KEYS, max_size=4),
)
OBJECTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        st.tuples(inner, inner),
        st.lists(inner, max_size=5).map(tuple),
        inner.map(lambda x: [x, x]),
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(OBJECTS, st.integers(0, 5))
def test_the_reader_agrees_with_pickle(obj, protocol):
    data = pickle.dumps(obj, protocol)
    found = Reader(data, with_user_globals([], frozenset(), False)).load()
    exactly(found, pickle.loads(data))
    # What was one object stays one, which writing it again shows.
    assert len(pickle.dumps(found, protocol)) == len(pickle.dumps(pickle.loads(data), protocol))


@settings(max_examples=100, deadline=None)
@given(OBJECTS, st.integers(2, 5))
def test_objects_come_back(obj, protocol):
    exactly(loaded(saved(obj, pickle_protocol=protocol)), obj)


@st.composite
def views(draw: Any) -> list[Any]:
    """Several strided views of one storage."""
    dtype = draw(st.sampled_from(["float32", "int64", "uint8", "complex128"]))
    base = rushlight.arange(200).to(getattr(rushlight, dtype))
    found = []
    for _ in range(draw(st.integers(1, 4))):
        sizes = draw(st.lists(st.integers(0, 4), max_size=3))
        strides = draw(st.lists(st.integers(0, 15), min_size=len(sizes), max_size=len(sizes)))
        offset = draw(st.integers(0, 50))
        found.append(base.as_strided(sizes, strides, offset))
    return found


@settings(max_examples=200, deadline=None)
@given(views())
def test_views_of_one_storage(tensors):
    found = loaded(saved(tensors))
    for a, b in zip(found, tensors, strict=True):
        same(a, b)
        assert a.stride() == b.stride()
    used = [t for t in tensors if t.numel()]
    together = [f for f, t in zip(found, tensors, strict=True) if t.numel()]
    if used:
        first = min(t.storage_offset() for t in used)
        last = max(
            t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) for t in used
        )
        assert found[0].untyped_storage().nbytes() == (last - first + 1) * used[0].element_size()
        assert all(shares(together[0], other) for other in together)
        assert [f.storage_offset() for f in together] == [t.storage_offset() - first for t in used]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(width=32), max_size=20))
def test_bits_are_kept(values):
    found = loaded(saved(rushlight.tensor(values, dtype=rushlight.float32))).tolist()
    expected = rushlight.tensor(values, dtype=rushlight.float32).tolist()
    assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(found, expected, strict=True))
