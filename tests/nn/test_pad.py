"""Padding beside NumPy's, also cropping on one side."""

import itertools

import numpy as np
import pytest

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 3, 3)])
def test_pad(torch, mode, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    dims = len(shape) - 2
    for widths in itertools.product((0, 1, 2), repeat=2):
        pairs = [widths, (1, 2), (2, 0)][:dims]
        flat = [w for pair in pairs for w in pair]
        leaf = torch.tensor(x.tolist(), dtype=torch.float64, requires_grad=True)
        out = torch.nn.functional.pad(leaf, flat, mode=mode)
        sides = [(0, 0), (0, 0), *reversed(pairs)]
        assert out.tolist() == np.pad(x, sides, mode=MODES[mode]).tolist()
        # every element is counted as often as it occurs
        places = np.pad(np.arange(x.size).reshape(shape), sides, mode=MODES[mode])
        out.sum().backward()
        assert leaf.grad.reshape(-1).tolist() == np.bincount(places.reshape(-1), minlength=x.size).tolist()


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("widths", [(-1, 0), (0, -2), (-1, 2), (3, -2), (-2, -1), (-4, 2)])
def test_pad_that_crops(torch, mode, widths):
    x = torch.arange(5.0).reshape(1, 1, 5)
    out = torch.nn.functional.pad(x, widths, mode=mode)
    position = np.arange(-widths[0], 5 + widths[1])
    position = position.clip(0, 4) if mode == "replicate" else 4 - abs(4 - abs(position))
    assert out.reshape(-1).tolist() == position.astype(float).tolist()
    out.zero_()
    assert x.sum() == 10  # a copy
