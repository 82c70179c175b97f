"""Results of images in channels last are in channels last, with PyTorch's strides."""

import importlib

import pytest

SHAPES = [(2, 4, 6, 6), (1, 4, 6, 6), (2, 1, 6, 6), (2, 4, 1, 1), (1, 1, 6, 6), (2, 3, 6, 5), (2, 4, 6, 1)]


def last(torch, x):
    return x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)


def calls(torch, x):
    """Functions of images, by name."""
    F, channels = torch.nn.functional, x.shape[1]
    weight = torch.ones(6, channels, 3, 3)
    found = {
        "conv2d": lambda: F.conv2d(x, weight, padding=1),
        "conv2d, 1x1": lambda: F.conv2d(x, weight[:, :, :1, :1], torch.ones(6)),
        "conv2d, by channel": lambda: F.conv2d(x, torch.ones(channels, 1, 3, 3), padding=1, groups=channels),
        "conv2d, the weight's order": lambda: F.conv2d(x.contiguous(), last(torch, weight), padding=1),
        "conv_transpose2d": lambda: F.conv_transpose2d(x, torch.ones(channels, 5, 3, 3)),
        "max_pool2d": lambda: F.max_pool2d(x, 2),
        "max_pool2d, indices": lambda: F.max_pool2d(x, 2, return_indices=True)[1],
        "avg_pool2d": lambda: F.avg_pool2d(x, 2),
        "lp_pool2d": lambda: F.lp_pool2d(x, 2, 2),
        "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(x, 2),
        "adaptive_avg_pool2d, to one": lambda: F.adaptive_avg_pool2d(x, 1),
        "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(x, 2),
        "cat": lambda: torch.cat([x, x], 1),
        "cat of both orders": lambda: torch.cat([x, x.contiguous()], 1),
        "cat of both orders, row-major first": lambda: torch.cat([x.contiguous(), x], 1),
        "pad, circular": lambda: F.pad(x, (1, 1, 1, 1), mode="circular"),
        "interpolate, antialias": lambda: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True),
        "interpolate, area": lambda: F.interpolate(x, size=(2, 2), mode="area"),
        "group_norm": lambda: F.group_norm(x, 1),
        "batch_norm": lambda: F.batch_norm(x, None, None, training=True),
        "layer_norm": lambda: F.layer_norm(x, x.shape[1:]),
        "relu": lambda: F.relu(x),
        "softmax": lambda: F.softmax(x, 1),
        "sort": lambda: torch.sort(x, 1)[0],
        "flip": lambda: x.flip(2),
        "roll": lambda: x.roll(1, 2),
        "complex": lambda: torch.complex(x, x),
        "grid_sample": lambda: F.grid_sample(x, torch.zeros(x.shape[0], 3, 3, 2), align_corners=False),
        "pixel_shuffle": lambda: F.pixel_shuffle(x, 2),
        "pixel_unshuffle": lambda: F.pixel_unshuffle(x, 2),
        "channel_shuffle": lambda: F.channel_shuffle(x, 2),
        "zeros_like": lambda: torch.zeros_like(x),
        "sum over channels": lambda: x.sum(1, keepdim=True),
        "with a bias": lambda: x + torch.ones(channels, 1, 1),
    }
    for mode in ("constant", "reflect", "replicate"):
        found[f"pad, {mode}"] = lambda mode=mode: F.pad(x, (1, 1, 1, 1), mode=mode)
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        found[f"interpolate, {mode}"] = lambda mode=mode: F.interpolate(x, scale_factor=2, mode=mode)
    return found


def image(torch, shape, order):
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    return last(torch, x) if order == "channels last" else x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["channels last", "row-major"])
def test_strides(rl, shape, order):
    torch = pytest.importorskip("torch")
    expected, got = (calls(package, image(package, shape, order)) for package in (torch, rl))
    different, compared = {}, 0
    for name, call in expected.items():
        try:
            wanted = call()
        except RuntimeError:
            continue  # the shape does not fit the function
        result = got[name]()
        compared += 1
        if result.stride() != wanted.stride():
            different[name] = result.stride(), wanted.stride()
        assert result.reshape(-1).tolist() == pytest.approx(wanted.reshape(-1).tolist(), rel=1e-5, abs=1e-5), name
    assert not different
    assert compared > 25


@pytest.mark.filterwarnings("ignore")
def test_strides_in_three_dimensions(rl):
    torch = pytest.importorskip("torch")
    results = []
    for package in (torch, rl):
        F = package.nn.functional
        x = last(package, package.arange(2.0 * 3 * 4 * 4 * 4).reshape(2, 3, 4, 4, 4))
        results.append(
            {
                "conv3d": F.conv3d(x, package.ones(4, 3, 2, 2, 2)),
                "max_pool3d": F.max_pool3d(x, 2),
                "avg_pool3d": F.avg_pool3d(x, 2),
                "cat": package.cat([x, x], 1),
                "interpolate": F.interpolate(x, scale_factor=2),
            }
        )
    expected, got = ({name: t.stride() for name, t in found.items()} for found in results)
    assert got == expected


@pytest.mark.parametrize("package", ["torch", "rushlight"])
def test_a_network_keeps_the_order(package):
    """From the image to the features, and the gradients of the weights."""
    torch = importlib.import_module(package) if package == "rushlight" else pytest.importorskip("torch")
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 4, 3),
        nn.GroupNorm(2, 4),
    ).to(memory_format=torch.channels_last)
    x = last(torch, torch.ones(2, 3, 8, 8))
    seen = []
    for layer in net:
        x = layer(x)
        seen.append(x.is_contiguous(memory_format=torch.channels_last))
    assert seen == [True] * 6
    x.square().sum().backward()
    assert net[0].weight.grad.is_contiguous(memory_format=torch.channels_last)
