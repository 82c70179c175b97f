"""Pictures of graphs."""

import shutil
import xml.etree.ElementTree as ElementTree

import pytest


def loss_of(rl):
    net = rl.nn.Sequential(rl.nn.Linear(3, 4), rl.nn.Tanh(), rl.nn.Linear(4, 1))
    return net, net(rl.ones(5, 3)).pow(2).mean()


def test_text(rl, tmp_path):
    net, loss = loss_of(rl)
    picture = rl.utils.viz.graph(loss, tmp_path / "net.dot", params=net)
    assert (tmp_path / "net.dot").read_text() == picture.dot
    for part in ("digraph", "TanhBackward0", "0.weight", "2.bias", "float32 [4, 3]", "float32 [5, 4]", "result"):
        assert part in picture.dot
    assert picture.dot.count("->") == sum(len(b.edges) for b in picture.boxes)
    assert picture.dot.count('label="2.weight') == 1


def test_svg_is_well_formed_and_shows_everything(rl, tmp_path):
    net, loss = loss_of(rl)
    picture = rl.utils.viz.graph(loss, params=net)
    root = ElementTree.fromstring(picture.svg())
    tag = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{tag}rect")) == len(picture.boxes)
    assert len(root.findall(f"{tag}line")) == sum(len(b.edges) for b in picture.boxes)
    for line in root.findall(f"{tag}line"):  # what a box is made from stands above it
        assert float(line.get("y1")) < float(line.get("y2"))
    texts = {t.text for t in root.findall(f"{tag}text")}
    assert {"0.weight", "TanhBackward0"} <= texts
    picture.save(tmp_path / "net.svg")
    assert "<svg" in (tmp_path / "net.svg").read_text()
    assert picture._repr_svg_() == picture.svg()


def test_times(rl):
    net, loss = loss_of(rl)
    with rl.profiler.profile() as p:
        loss.backward(retain_graph=True)
    picture = rl.utils.viz.graph(loss, params=net, profile=p)
    assert all(any("backward" in line for line in b.lines) for b in picture.boxes if b.kind != "root")
    assert "us" not in rl.utils.viz.graph(loss, params=net).dot.replace("result", "")


def test_names_and_shared_parts(rl):
    x = rl.ones(2, requires_grad=True)
    w = rl.nn.Parameter(rl.ones(2))
    y = x * w
    picture = rl.utils.viz.graph([y.sum(), (y * y).sum()], params={'a "name"': x})
    labels = [b.lines[0] for b in picture.boxes]
    assert labels.count("MulBackward0") == 2 and labels.count('a "name"') == 1 and labels.count("parameter") == 1
    assert r"a \"name\"" in picture.dot
    ElementTree.fromstring(picture.svg())


def test_refusals(rl, tmp_path):
    with pytest.raises(RuntimeError, match="does not require grad"):
        rl.utils.viz.graph(rl.ones(2))
    x = rl.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="at most 2"):
        rl.utils.viz.graph(x.exp().exp().exp(), most=2)
    with pytest.raises(ValueError, match="ends in"):
        rl.utils.viz.graph(x.exp(), tmp_path / "name")
    with pytest.raises(TypeError, match="module or a dict"):
        rl.utils.viz.graph(x.exp(), params=[x])
    if shutil.which("dot") is None:
        with pytest.raises(RuntimeError, match="png file needs the program 'dot'"):
            rl.utils.viz.graph(x.exp(), tmp_path / "picture.png")
