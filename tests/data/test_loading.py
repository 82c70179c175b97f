"""Datasets, samplers, collation and the DataLoader: the same batches as PyTorch's under the same seed."""

from __future__ import annotations

import collections
import importlib
import itertools
import pickle
import warnings

import numpy as np
import pytest

rl = importlib.import_module("rushlight")
torch = pytest.importorskip("torch")

SIDES = pytest.mark.parametrize("side", [torch, rl], ids=["torch", "rushlight"])
Pair = collections.namedtuple("Pair", ["x", "y"])


def plain(value):
    """Tensors as (dtype, shape, values), containers with their types."""
    if hasattr(value, "numpy") and hasattr(value, "tolist") and hasattr(value, "requires_grad"):
        return ("tensor", str(value.dtype).rpartition(".")[2], tuple(value.shape), value.tolist())
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value.shape, value.tolist())
    if isinstance(value, collections.abc.Mapping):
        return (type(value).__name__, [(k, plain(v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(v) for v in value])
    return value


def same(make):
    """Both sides give the same, and leave their random generators in the same state."""
    out = []
    for side in (torch, rl):
        side.manual_seed(3)
        result = plain(make(side, side.utils.data))
        out.append((result, side.rand(3).tolist()))
    assert out[1] == out[0]


DATA = np.random.default_rng(0).standard_normal((23, 3)).astype(np.float32)


def tensors(t, d):
    return d.TensorDataset(t.from_numpy(DATA.copy()), t.arange(23))


class Items:
    def __getitem__(self, i):
        return DATA[i], int(i), {"weight": float(i), "name": f"n{i}"}

    def __len__(self):
        return 23


DATASETS = {
    "tensors": tensors,
    "items": lambda t, d: Items(),
    "split": lambda t, d: d.random_split(tensors(t, d), [15, 8])[0],
    "subset": lambda t, d: d.Subset(Items(), [3, 1, 4, 1, 5]),
    "concatenated": lambda t, d: d.ConcatDataset([tensors(t, d), tensors(t, d)]),
    "stacked": lambda t, d: d.StackDataset(tensors(t, d), t.arange(23)),
    "named": lambda t, d: d.StackDataset(a=tensors(t, d), b=t.arange(23)),
    "list": lambda t, d: list(range(10)),
}
OPTIONS = [
    {},
    {"batch_size": 4},
    {"batch_size": 4, "shuffle": True},
    {"batch_size": 4, "shuffle": True, "drop_last": True},
    {"batch_size": None},
    {"batch_sampler": [[1, 2], [3]]},
    {"sampler": [3, 1, 2], "batch_size": 2},
]


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_batches(name, options):
    same(lambda t, d: list(d.DataLoader(DATASETS[name](t, d), **options)))
    same(lambda t, d: len(d.DataLoader(DATASETS[name](t, d), **options)))


def test_several_epochs_and_generators():
    def epochs(t, d, generator):
        loader = d.DataLoader(tensors(t, d), 5, shuffle=True, generator=generator)
        return [list(loader) for _ in range(3)]

    same(lambda t, d: epochs(t, d, None))
    same(lambda t, d: epochs(t, d, t.Generator().manual_seed(9)))


@pytest.mark.parametrize(
    "options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}], ids=str
)
def test_streams(options):
    def stream(d):
        class Count(d.IterableDataset):
            def __iter__(self):
                return iter(range(10))

            def __len__(self):
                return 10

        return Count()

    same(lambda t, d: list(d.DataLoader(stream(d), **options)))
    same(lambda t, d: len(d.DataLoader(stream(d), **options)))
    same(lambda t, d: list(d.DataLoader(d.ChainDataset([stream(d), stream(d)]), **options)))
    same(lambda t, d: list(d.DataLoader(stream(d) + stream(d), **options)))
    same(lambda t, d: len(stream(d) + stream(d)))


@SIDES
def test_wrong_length_of_a_stream_warns(side):
    class Liar(side.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

        def __len__(self):
            return 3

    loader = side.utils.data.DataLoader(Liar(), batch_size=None)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match=r"[Ll]ength"):
        assert len(list(loader)) == 5


def test_samplers():
    for replacement, n in itertools.product((True, False), (None, 5, 50)):
        same(lambda t, d, r=replacement, k=n: list(d.RandomSampler(range(7), r, k)))
        same(lambda t, d, r=replacement, k=n: len(d.RandomSampler(range(7), r, k)))
    same(lambda t, d: list(d.SubsetRandomSampler([5, 6, 7, 8])))
    same(lambda t, d: list(d.WeightedRandomSampler([0.1, 0.9, 3.0], 20)))
    same(lambda t, d: list(d.WeightedRandomSampler([0.1, 0.9, 3.0], 2, False)))
    same(lambda t, d: list(d.SequentialSampler(range(4))))
    for n, drop in itertools.product((1, 2, 3, 10), (True, False)):
        same(lambda t, d, k=n, x=drop: [list(d.BatchSampler(range(7), k, x)), len(d.BatchSampler(range(7), k, x))])
    for shuffle, drop, n in itertools.product((True, False), (True, False), (2, 3, 12)):
        for rank in range(n):

            def sampler(t, d, s=shuffle, x=drop, k=n, r=rank):
                result = d.DistributedSampler(range(11), k, r, s, seed=4, drop_last=x)
                result.set_epoch(2)
                return [list(result), len(result)]

            same(sampler)


def test_random_split():
    same(lambda t, d: [p.indices for p in d.random_split(range(11), [4, 7])])
    same(lambda t, d: [p.indices for p in d.random_split(range(11), [0.3, 0.3, 0.4])])
    same(lambda t, d: [p.indices for p in d.random_split(range(11), [0.5, 0.5], t.Generator().manual_seed(1))])
    with pytest.warns(UserWarning, match="empty"):
        rl.utils.data.random_split(range(2), [0.9, 0.05, 0.05])


SAMPLES = {
    "ints": lambda t: [1, 2],
    "floats": lambda t: [1.5, 2],
    "bools": lambda t: [True, False],
    "text": lambda t: ["a", "b"],
    "bytes": lambda t: [b"a", b"b"],
    "pairs": lambda t: [(1, 2.0), (3, 4.0)],
    "lists": lambda t: [[1, "x"], [3, "y"]],
    "named": lambda t: [Pair(1, 2), Pair(3, 4)],
    "dicts": lambda t: [{"a": 1, "b": (1, "x")}, {"a": 2, "b": (3, "y")}],
    "arrays": lambda t: [np.ones(3), np.zeros(3)],
    "integer arrays": lambda t: [np.arange(3), np.arange(3)],
    "0-d arrays": lambda t: [np.array(3.0), np.array(4.0)],
    "numpy numbers": lambda t: [np.float32(1), np.float32(2)],
    "numpy integers": lambda t: [np.int64(1), np.int64(3)],
    "numpy bools": lambda t: [np.bool_(True), np.bool_(False)],
    "tensors": lambda t: [t.ones(2), t.zeros(2)],
    "ordered": lambda t: [collections.OrderedDict(a=np.ones(2))] * 2,
    "default": lambda t: [collections.defaultdict(int, a=1)] * 2,
    "empty": lambda t: [{}],
    "nested": lambda t: [[(1, [2.0])], [(3, [4.0])]],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_collation(name):
    same(lambda t, d: d.default_collate(SAMPLES[name](t)))
    same(lambda t, d: d.default_convert(SAMPLES[name](t)))


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (lambda: [object()], TypeError),
        (lambda: [None], TypeError),
        (lambda: [np.array(["a"])], TypeError),
        (lambda: [[1, 2], [1]], RuntimeError),
    ],
)
@SIDES
def test_samples_that_do_not_fit(side, batch, error):
    with pytest.raises(error):
        side.utils.data.default_collate(batch())


def test_own_collation():
    loader = rl.utils.data.DataLoader(Items(), 4, collate_fn=lambda samples: [s[1] for s in samples])
    assert next(iter(loader)) == [0, 1, 2, 3]
    fn = importlib.import_module("rushlight.utils.data._utils.collate")
    table = {str: lambda batch, *, collate_fn_map=None: "+".join(batch)}
    assert fn.collate([("a", "b"), ("c", "d")], collate_fn_map=table) == ["a+c", "b+d"]


def test_many_at_once():
    class Bulk(Items):
        def __getitems__(self, indices):
            self.asked = indices
            return [i * 10 for i in indices]

    data = Bulk()
    assert next(iter(rl.utils.data.DataLoader(data, 3))).tolist() == [0, 10, 20]
    assert data.asked == [0, 1, 2]


def test_the_short_way_gives_the_same_batches():
    """A TensorDataset is read batch by batch; a subclass of it sample by sample."""
    d = rl.utils.data

    class Slow(d.TensorDataset):
        def __getitem__(self, i):
            return super().__getitem__(i)

    x, y = rl.from_numpy(DATA.copy()), rl.arange(23)
    for extra in ((), (x[:, ::2],), (x.t()[0],)):
        for options in ({"batch_size": 4}, {"batch_size": 5, "shuffle": True}):
            rl.manual_seed(0)
            fast = plain(list(d.DataLoader(d.TensorDataset(x, y, *extra), **options)))
            rl.manual_seed(0)
            assert fast == plain(list(d.DataLoader(Slow(x, y, *extra), **options)))
    with pytest.raises(IndexError):
        list(d.DataLoader(d.TensorDataset(x), sampler=[50], batch_size=2))


def stream(d):
    class Stream(d.IterableDataset):
        def __iter__(self):
            return iter(())

    return Stream()


BAD = [
    lambda t, d: d.DataLoader([1], num_workers=-1),
    lambda t, d: d.DataLoader([1], timeout=-1),
    lambda t, d: d.DataLoader([1], prefetch_factor=2),
    lambda t, d: d.DataLoader([1], persistent_workers=True),
    lambda t, d: d.DataLoader([1], multiprocessing_context="fork"),
    lambda t, d: d.DataLoader([1], shuffle=True, sampler=[0]),
    lambda t, d: d.DataLoader([1], batch_sampler=[[0]], batch_size=3),
    lambda t, d: d.DataLoader([1], batch_size=None, drop_last=True),
    lambda t, d: d.DataLoader([1], batch_size=0),
    lambda t, d: d.DataLoader([], shuffle=True),
    lambda t, d: setattr(d.DataLoader([1]), "batch_size", 3),
    lambda t, d: setattr(d.DataLoader([1]), "dataset", 3),
    lambda t, d: d.DataLoader(stream(d), shuffle=True),
    lambda t, d: d.DataLoader(stream(d), sampler=[0]),
    lambda t, d: d.RandomSampler([1], num_samples=0),
    lambda t, d: d.RandomSampler([1], replacement=1),
    lambda t, d: d.WeightedRandomSampler([[1.0]], 2),
    lambda t, d: d.WeightedRandomSampler([1.0], 0),
    lambda t, d: d.BatchSampler([1], True, False),
    lambda t, d: d.BatchSampler([1], 1, 1),
    lambda t, d: d.TensorDataset(t.ones(2), t.ones(3)),
    lambda t, d: d.ConcatDataset([]),
    lambda t, d: d.ConcatDataset([stream(d)]),
    lambda t, d: d.ConcatDataset([[1]])[-5],
    lambda t, d: d.StackDataset(),
    lambda t, d: d.StackDataset([1], [1, 2]),
    lambda t, d: d.StackDataset([1], a=[1]),
    lambda t, d: d.random_split([1, 2, 3], [1, 1]),
    lambda t, d: d.Dataset()[0],
    lambda t, d: d.DistributedSampler([1], 2, 2),
    lambda t, d: d.TensorDataset(t.ones(2))[5],
    lambda t, d: list(d.ChainDataset([[1]])),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input(number):
    errors = []
    for side in (torch, rl):
        with pytest.raises(Exception) as error:
            BAD[number](side, side.utils.data)
        errors.append(type(error.value))
    assert errors[0] is errors[1]


def test_workers_are_refused_clearly():
    with pytest.raises(ValueError, match="num_workers"):
        rl.utils.data.DataLoader([1], num_workers=2)


@SIDES
def test_iterators_cannot_be_pickled(side):
    with pytest.raises(NotImplementedError):
        pickle.dumps(iter(side.utils.data.DataLoader([1])))


@SIDES
def test_generic_classes(side):
    d = side.utils.data

    class Ints(d.Dataset[int]):
        def __getitem__(self, i):
            return i

    class Order(d.Sampler[int]):
        pass

    assert Ints()[3] == 3
    assert isinstance(Order(), d.Sampler)
    assert d.get_worker_info() is None


def test_options_without_effect_are_accepted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = rl.utils.data.DataLoader(
            [1, 2], pin_memory=True, timeout=3, worker_init_fn=print, in_order=False, pin_memory_device=""
        )
        assert [b.tolist() for b in loader] == [[1], [2]]
