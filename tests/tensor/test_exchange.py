"""Exchange of memory with NumPy and PyTorch: DLPack both ways, numpy() and from_numpy()."""

import ctypes
import datetime
import gc

import pytest

np = pytest.importorskip("numpy")
rl = pytest.importorskip("rushlight")

from rushlight import _C  # noqa: E402

NUMPY_DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
DTYPES = [*NUMPY_DTYPES, "bfloat16"]


def sample(dtype):
    return np.array([[0, 1, 2], [3, 0, 5]]).astype(dtype)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed: nothing to exchange with")


# ---------------------------------------------------------------- NumPy


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("take", ["from_dlpack", "from_numpy"])
def test_from_numpy_array(dtype, take):
    a = sample(dtype)
    t = getattr(rl, take)(a)
    assert t.dtype == getattr(rl, dtype) and t.shape == (2, 3)
    assert t.data_ptr() == a.ctypes.data and t.tolist() == a.tolist()
    a[1, 1] = 1
    assert t[1, 1].item() == 1
    t[0, 0] = 1
    assert a[0, 0] == 1


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("give", [np.from_dlpack, lambda t: t.numpy(), np.asarray], ids=["dlpack", "numpy", "asarray"])
def test_to_numpy_array(dtype, give):
    t = rl.tensor(sample(dtype))
    a = give(t)
    assert a.dtype == dtype and a.shape == (2, 3) and a.ctypes.data == t.data_ptr()
    assert a.tolist() == t.tolist() == sample(dtype).tolist()
    a[0, 0] = 1
    assert t[0, 0].item() == 1
    t[1, 1] = 1
    assert a[1, 1] == 1


def test_numpy_has_no_bfloat16():
    with pytest.raises((BufferError, RuntimeError)):  # NumPy's own refusal
        np.from_dlpack(rl.ones(2, dtype=rl.bfloat16))
    with pytest.raises(TypeError, match="unsupported ScalarType bfloat16"):
        rl.ones(2, dtype=rl.bfloat16).numpy()


VIEWS = {
    "transposed": lambda x: x.T,
    "stepped": lambda x: x[1:, ::2],
    "column": lambda x: x[:, 1],
    "one element": lambda x: x[1:2, 2:3],
    "0-dim": lambda x: x[1, 2],
}


@pytest.mark.parametrize("view", VIEWS)
def test_strides(view):
    base = np.arange(12.0).reshape(3, 4)
    a = VIEWS[view](base) if view != "0-dim" else base[1:2, 2:3].reshape(())
    t = rl.from_dlpack(a)
    assert t.tolist() == a.tolist() and t.data_ptr() == a.ctypes.data
    t = VIEWS[view](rl.arange(12.0).reshape(3, 4))
    a = np.from_dlpack(t)
    assert a.tolist() == t.tolist() and a.ctypes.data == t.data_ptr()


@pytest.mark.parametrize("take", ["from_dlpack", "from_numpy"])
def test_negative_and_zero_strides(take):
    base = np.arange(12.0).reshape(3, 4)
    flipped = base[::-1, ::-1]
    t = getattr(rl, take)(flipped)
    assert t.stride() == (-4, -1) and t.tolist() == flipped.tolist()
    assert (t + 1).tolist() == (flipped + 1).tolist()
    t[0, 0] = 50
    assert base[2, 3] == 50
    assert np.from_dlpack(t).tolist() == flipped.tolist()
    spread = rl.arange(3.0)[:, None].expand(3, 2)
    assert np.from_dlpack(spread).strides == (4, 0)
    assert np.from_dlpack(spread).tolist() == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4)])
def test_zero_size(shape):
    t = rl.from_dlpack(np.empty(shape, "int16"))
    assert t.shape == shape and t.dtype == rl.int16 and t.numel() == 0
    assert np.from_dlpack(t).shape == shape and t.numpy().shape == shape
    assert rl.from_dlpack(rl.empty(shape)).shape == shape


def test_read_only():
    a = np.arange(3.0)
    a.flags.writeable = False
    t = rl.from_dlpack(a)
    assert t.tolist() == [0, 1, 2] and t.data_ptr() == a.ctypes.data
    with pytest.raises(RuntimeError, match="read-only"):
        t.add_(1)
    assert not np.from_dlpack(t).flags.writeable and not t.numpy().flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    c = np.from_dlpack(t, copy=True)
    c[0] = 7
    assert a[0] == 0
    assert np.from_dlpack(rl.ones(2)).flags.writeable


def test_read_only_from_numpy():
    a = np.arange(3.0)
    a.flags.writeable = False
    t = rl.from_numpy(a)
    assert t.tolist() == [0, 1, 2] and t.data_ptr() == a.ctypes.data
    with pytest.raises(RuntimeError, match="read-only"):
        t.add_(1)


# ---------------------------------------------------------------- lifetime


def refill():
    """Allocates blocks of the size the tests use, so that memory freed too early has other contents."""
    return [rl.full((1000,), -1.0, dtype=rl.float64) for _ in range(50)], [np.full(1000, -1.0) for _ in range(50)]


@pytest.mark.parametrize("give", [np.from_dlpack, lambda t: t.numpy(), lambda t: np.from_dlpack(t[500:])])
def test_arrays_keep_the_tensor(give):
    t = rl.arange(1000, dtype=rl.float64)
    a = give(t)
    del t
    gc.collect()
    blocks = refill()
    assert a.tolist() == list(range(1000 - len(a), 1000))
    del blocks


@pytest.mark.parametrize("take", ["from_dlpack", "from_numpy"])
def test_tensors_keep_the_array(take):
    released = []

    class Owner(np.ndarray):
        def __del__(self):
            released.append(self.shape)

    a = np.arange(1000.0).view(Owner)
    t = getattr(rl, take)(a)
    view = t[500:]
    del a, t
    gc.collect()
    blocks = refill()
    assert not released and view.tolist() == list(range(500, 1000))
    del view, blocks
    gc.collect()
    assert (1000,) in released


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_unused_capsule_frees_its_tensor(version):
    before = _C._memory_stats()["allocated_bytes"]
    for _ in range(20):
        rl.ones(100_000).__dlpack__(max_version=version)
    gc.collect()
    assert _C._memory_stats()["allocated_bytes"] - before < 400_000
    for _ in range(20):
        rl.from_dlpack(rl.ones(100_000).__dlpack__(max_version=version))
    gc.collect()
    assert _C._memory_stats()["allocated_bytes"] - before < 400_000


# ---------------------------------------------------------------- capsules


@pytest.mark.parametrize("version, name", [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned")])
def test_capsules(version, name):
    t = rl.arange(6.0).reshape(2, 3).T
    capsule = t.__dlpack__(max_version=version)
    assert f'"{name}"' in repr(capsule)
    back = rl.from_dlpack(capsule)
    assert back.data_ptr() == t.data_ptr() and back.stride() == t.stride() and back.tolist() == t.tolist()
    assert f'"used_{name}"' in repr(capsule)
    with pytest.raises(RuntimeError, match="consumed before"):
        rl.from_dlpack(capsule)
    del capsule, t
    gc.collect()
    assert back.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_every_dtype_comes_back(dtype, version):
    t = rl.tensor([[0, 1], [2, 3]]).to(getattr(rl, dtype))
    back = rl.from_dlpack(t.__dlpack__(max_version=version))
    assert back.dtype == t.dtype and back.tolist() == t.tolist() and back.data_ptr() == t.data_ptr()


def test_copy():
    t = rl.arange(6.0).reshape(2, 3).T
    for version in (None, (1, 0)):
        c = rl.from_dlpack(t.__dlpack__(max_version=version, copy=True))
        assert c.data_ptr() != t.data_ptr() and c.tolist() == t.tolist()
        assert rl.from_dlpack(t.__dlpack__(max_version=version, copy=False)).data_ptr() == t.data_ptr()
    a = np.arange(3.0)
    assert rl.from_dlpack(a, copy=True).data_ptr() != a.ctypes.data
    assert rl.from_dlpack(a, copy=False).data_ptr() == a.ctypes.data


def test_tensors_that_require_grad():
    w = rl.ones(2, requires_grad=True)
    for t in (w, w * 2):
        with pytest.raises(BufferError, match="requires grad"):
            t.__dlpack__()
        with pytest.raises(RuntimeError, match="requires grad"):
            t.numpy()
    assert np.from_dlpack(w.detach()).tolist() == [1, 1]


def test_refusals():
    with pytest.raises(BufferError, match="meta"):
        rl.ones(2, device="meta").__dlpack__()
    with pytest.raises(TypeError, match=r"from_dlpack: expected a DLPack capsule .* got int"):
        rl.from_dlpack(3)
    with pytest.raises(TypeError, match="from_dlpack: expected a DLPack capsule, got int"):
        _C._from_dlpack(3)
    with pytest.raises(RuntimeError, match="datetime_CAPI"):
        rl.from_dlpack(datetime.datetime_CAPI)
    with pytest.raises(BufferError, match="type code 1 with 16 bits"):
        rl.from_dlpack(np.ones(3, "uint16"))
    packed = np.zeros(3, [("a", "u1"), ("b", "<f8")])["b"]
    with pytest.raises((BufferError, ValueError)):
        rl.from_dlpack(packed)

    class Elsewhere:
        def __dlpack_device__(self):
            return (2, 1)

        def __dlpack__(self, **kwargs):
            raise AssertionError("must not be asked")

    with pytest.raises(BufferError, match="device type 2, index 1"):
        rl.from_dlpack(Elsewhere())


def test_producers_before_version_1():
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    a = np.arange(3.0)
    for take in (rl.from_dlpack, rl.as_tensor):
        assert take(Old(a)).data_ptr() == a.ctypes.data
    t = rl.tensor(Old(a))
    assert t.data_ptr() != a.ctypes.data and t.tolist() == [0, 1, 2]


# ---------------------------------------------------------------- PyTorch


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_both_ways(torch, dtype):
    values = [[0, 1, 2], [3, 0, 5]]
    t = rl.tensor(values).to(getattr(rl, dtype))
    theirs = torch.from_dlpack(t)
    assert theirs.dtype == getattr(torch, dtype) and theirs.data_ptr() == t.data_ptr()
    assert theirs.tolist() == t.tolist()
    theirs[0, 0] = 1
    assert t[0, 0].item() == 1
    source = torch.tensor(values).to(getattr(torch, dtype))
    ours = rl.from_dlpack(source)
    assert ours.dtype == getattr(rl, dtype) and ours.data_ptr() == source.data_ptr()
    assert ours.tolist() == source.tolist()
    ours[0, 0] = 1
    assert source[0, 0].item() == 1


def test_torch_strides_and_lifetime(torch):
    t = rl.arange(1000, dtype=rl.float64).reshape(10, 100)
    theirs = torch.from_dlpack(t.T[::3])
    assert theirs.stride() == t.T[::3].stride()
    expected = t.T[::3].tolist()
    del t
    gc.collect()
    blocks = refill()
    assert theirs.tolist() == expected
    source = torch.arange(1000, dtype=torch.float64).reshape(10, 100)
    ours = rl.from_dlpack(source.T[::3])
    assert ours.stride() == source.T[::3].stride()
    del source
    gc.collect()
    blocks = [torch.full((1000,), -1.0, dtype=torch.float64) for _ in range(50)]
    assert ours.tolist() == expected
    assert rl.from_dlpack(torch.empty(0, 3)).shape == (0, 3) and torch.from_dlpack(rl.empty(0, 3)).shape == (0, 3)
    del blocks
    assert rl.as_tensor(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(BufferError):
        rl.from_dlpack(torch.ones(2, requires_grad=True))


# ---------------------------------------------------------------- capsules of careless producers


class Managed(ctypes.Structure):
    """A capsule's contents as the DLPack standard lays them out, version 1."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def handmade(deleted, shape, strides, memory, /, **fields):
    """A capsule over `memory`, and what must outlive it."""
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: deleted.append(1))
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    steps = (ctypes.c_int64 * max(1, len(shape)))(*strides) if strides is not None else None
    m = Managed((1, 0), None, ctypes.cast(deleter, ctypes.c_void_p), 0, ctypes.addressof(memory), (1, 0), len(shape))
    m.code, m.bits, m.lanes, m.shape = 2, 32, 1, sizes
    if steps is not None:
        m.strides = steps
    for name, value in fields.items():
        setattr(m, name, value)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(m), b"dltensor_versioned", None), (m, deleter, sizes, steps)


@pytest.mark.parametrize(
    "shape, strides, offset, expected",
    [
        ((2, 3), None, 0, [[0, 1, 2], [3, 4, 5]]),
        ((2, 3), None, 8, [[2, 3, 4], [5, 6, 7]]),
        ((3,), (-2,), 20, [5, 3, 1]),
        ((2, 2), (0, 3), 4, [[1, 4], [1, 4]]),
        ((), None, 12, 3),
        ((1, 2), (1 << 60, 1), 0, [[0, 1]]),
    ],
)
def test_handmade_capsules(shape, strides, offset, expected):
    memory, deleted = (ctypes.c_float * 8)(*range(8)), []
    capsule, _keep = handmade(deleted, shape, strides, memory, byte_offset=offset)
    t = rl.from_dlpack(capsule)
    assert t.tolist() == expected and t.data_ptr() == ctypes.addressof(memory) + offset
    view = t.reshape(-1)[:1] if strides is None else t
    del t
    assert not deleted
    del view
    gc.collect()
    assert deleted == [1]


@pytest.mark.parametrize(
    "shape, strides, fields, message",
    [
        ((2,), None, {"version": (2, 0)}, "got version 2.0"),
        ((2,), None, {"device": (2, 3)}, "got device type 2, index 3"),
        ((2,), None, {"lanes": 4}, "32 bits and 4 lanes"),
        ((2,), None, {"code": 3}, "type code 3"),
        ((2,), None, {"ndim": -1}, "got -1"),
        ((2,), None, {"ndim": 1000}, "got 1000"),
        ((2,), None, {"data": None}, "no memory"),
        ((2,), None, {"byte_offset": 1}, "not aligned"),
        ((-2,), None, {}, "must not be negative"),
        ((3, 3), (1 << 62, 1 << 62), {}, "overflow"),
        ((2, 2), (1 << 60, -(1 << 60)), {}, "overflow"),
        ((2,), None, {"shape": None}, "no shape"),
    ],
)
def test_refused_capsules_stay_whole(shape, strides, fields, message):
    memory, deleted = (ctypes.c_float * 8)(*range(8)), []
    capsule, _keep = handmade(deleted, shape, strides, memory, **fields)
    with pytest.raises(BufferError, match=message):
        rl.from_dlpack(capsule)
    assert not deleted and '"dltensor_versioned"' in repr(capsule)
