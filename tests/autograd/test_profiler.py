"""The profiler."""

import gzip
import importlib
import json
import threading
import warnings

import pytest

pytestmark = pytest.mark.filterwarnings("ignore:.*Warning:", "ignore::UserWarning", "ignore::DeprecationWarning")


@pytest.fixture
def prof(torch):
    return importlib.import_module(f"{torch.__name__}.profiler")


def work(torch):
    x = torch.ones(4, 4, requires_grad=True)
    (x * x).exp().sum().backward()


def counts(p):
    return {e.key: e.count for e in p.key_averages()}


def test_operations_and_backward_nodes(torch, prof):
    with prof.profile(activities=[prof.ProfilerActivity.CPU]) as p, prof.record_function("range"):
        work(torch)
    seen = counts(p)
    assert seen["range"] == 1 and seen["aten::exp"] == 1 and seen["aten::sum"] >= 1
    assert {"MulBackward0", "ExpBackward0", "SumBackward0"} <= seen.keys()
    assert seen["torch::autograd::AccumulateGrad"] == 1


def test_times_add_up(torch, prof):
    with prof.profile() as p, prof.record_function("outer"):
        work(torch)
    outer = next(e for e in p.events() if e.name == "outer")
    assert outer.cpu_children and all(c.cpu_parent is outer for c in outer.cpu_children)
    assert outer.self_cpu_time_total <= outer.cpu_time_total
    for child in outer.cpu_children:
        assert outer.time_range.start <= child.time_range.start <= child.time_range.end <= outer.time_range.end
    averages = p.key_averages()
    assert averages.self_cpu_time_total == pytest.approx(sum(a.self_cpu_time_total for a in averages))
    assert averages.total_average().count == len(p.events())


def test_shapes(torch, prof):
    with prof.profile(record_shapes=True) as p:
        a = torch.ones(2, 3)
        a @ torch.ones(3, 5)
        a @ torch.ones(3, 4)
    mm = [e for e in p.key_averages(group_by_input_shape=True) if e.key == "aten::mm"]
    assert sorted(e.input_shapes[1] for e in mm) == [[3, 4], [3, 5]]
    (together,) = [e for e in p.key_averages() if e.key == "aten::mm"]
    assert together.count == 2


def test_stacks_have_the_line_of_the_user(rl):
    with rl.profiler.profile(with_stack=True) as p:
        y = rl.ones(2).exp()  # this line
        rl.nn.functional.mse_loss(y, y)
    line = next(e for e in p.events() if e.key == "aten::exp").stack[0]
    assert "test_profiler.py" in line and "test_stacks_have_the_line_of_the_user" in line
    assert all("/rushlight/nn/" not in s for e in p.events() for s in e.stack)
    first = p.key_averages(group_by_stack_n=1)
    assert any(e.stack == [line] for e in first) and "Source Location" in first.table()


def test_memory(rl):
    with rl.profiler.profile(profile_memory=True) as p:
        kept = rl.ones(1000)
        with rl.profiler.record_function("nothing left"):
            rl.ones(1000)
        kept.add_(1)
    events = {e.name: e for e in p.events()}
    first = next(e for e in p.events() if e.name == "aten::ones")
    assert first.cpu_memory_usage >= 4000
    assert abs(events["nothing left"].cpu_memory_usage) < 4000
    assert events["aten::add_"].self_cpu_memory_usage < 4000
    assert "CPU Mem" in p.key_averages().table(sort_by="self_cpu_memory_usage")
    with rl.profiler.profile() as p:
        rl.ones(1)
    assert "CPU Mem" not in p.key_averages().table()


def test_table(torch, prof):
    with prof.profile() as p:
        for _ in range(3):
            work(torch)
    text = p.key_averages().table(sort_by="self_cpu_time_total", row_limit=2, header="title")
    assert "title" in text and "Self CPU time total" in text and "# of Calls" in text
    times = [e.cpu_time_total for e in p.key_averages()]
    assert all(t >= 0 for t in times)
    for key in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "count"):
        assert "aten::" in p.key_averages().table(sort_by=key)


def test_sorting(rl):
    with rl.profiler.profile() as p:
        for _ in range(9):
            rl.ones(1)
        rl.ones(1).exp()
    rows = p.key_averages().table(sort_by="count", row_limit=1).splitlines()
    assert rows[3].startswith("aten::ones") and rows[3].endswith("10")
    with pytest.raises(AttributeError, match="cpu_time_total"):
        p.key_averages().table(sort_by="colour")


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_chrome_trace(torch, prof, tmp_path, ending):
    with prof.profile(record_shapes=True) as p:
        work(torch)
    path = str(tmp_path / f"trace.{ending}")
    p.add_metadata("text", "value") if torch.__name__ == "rushlight" else None
    p.export_chrome_trace(path)
    with (gzip.open if ending.endswith("gz") else open)(path, "rt") as file:
        trace = json.load(file)
    events = {e["name"]: e for e in trace["traceEvents"] if e.get("ph") == "X"}
    assert {"aten::mul", "aten::exp"} <= events.keys()
    assert {"ts", "dur", "pid", "tid", "args", "cat"} <= events["aten::mul"].keys()
    assert any(e.get("cat") == "fwdbwd" and e["ph"] == "s" for e in trace["traceEvents"])


def test_stacks_for_flame_graphs(rl, tmp_path):
    with rl.profiler.profile(with_stack=True) as p:
        for _ in range(50):
            rl.ones(1000).exp()
    p.export_stacks(tmp_path / "stacks")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert lines and all(line.rpartition(" ")[2].isdigit() for line in lines)


def test_schedule_is_pytorch_s(rl):
    torch = pytest.importorskip("torch")
    for options in (
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 0, "warmup": 1, "active": 1, "repeat": 2},
        {"wait": 2, "warmup": 1, "active": 3, "repeat": 1, "skip_first": 2},
        {"wait": 2, "warmup": 1, "active": 1, "skip_first": 1, "skip_first_wait": 1},
    ):
        mine, theirs = rl.profiler.schedule(**options), torch.profiler.schedule(**options)
        assert [mine(i).name for i in range(20)] == [theirs(i).name for i in range(20)], options


def test_steps(torch, prof, tmp_path):
    seen = []

    def ready(p):
        seen.append((p.step_num, sum(e.name.startswith("ProfilerStep#") for e in p.events() if e.device_index == -1)))

    with prof.profile(
        activities=[prof.ProfilerActivity.CPU],
        schedule=prof.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=ready,
    ) as p:
        for _ in range(10):
            work(torch)
            p.step()
    assert [s for s, _ in seen] == [4, 8]
    if torch.__name__ == "rushlight":
        assert all(n == 2 for _, n in seen)
    with prof.profile(on_trace_ready=prof.tensorboard_trace_handler(str(tmp_path), "worker")):
        work(torch)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("worker.") and file.name.endswith(".pt.trace.json")


def test_record_function_decorates(torch, prof):
    @prof.record_function("decorated")
    def f(n):
        return n if n == 0 else f(n - 1)

    assert f(1) == 0
    with prof.profile() as p:
        f(2)
    assert counts(p)["decorated"] == 3


def test_the_older_interface(torch):
    profiler = importlib.import_module(f"{torch.__name__}.autograd.profiler")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profiler.profile(record_shapes=True) as p:
            work(torch)
        with profiler.profile(enabled=False) as off:
            work(torch)
    assert any(e.key == "aten::exp" for e in p.key_averages())
    assert p.total_average().count > 0 and p.self_cpu_time_total > 0
    assert "aten::exp" in p.table() and "aten::exp" in str(p)
    if torch.__name__ == "rushlight":
        with pytest.raises(RuntimeError, match="did not finish"):
            off.key_averages()


def test_threads_have_their_own_stacks(rl):
    def other():
        with rl.profiler.record_function("other"):
            rl.ones(3).exp()

    with rl.profiler.profile() as p, rl.profiler.record_function("main"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        rl.ones(3).sin()
    events = {e.name: e for e in p.events()}
    assert events["other"].cpu_parent is None and events["other"].thread != events["main"].thread
    assert events["aten::exp"].cpu_parent is events["other"]
    assert events["aten::sin"].cpu_parent is events["main"]


def test_errors_and_nesting(rl):
    with rl.profiler.profile() as p:
        with pytest.raises(RuntimeError):
            rl.ones(2) @ rl.ones(3)
        rl.ones(2).exp()
        with pytest.raises(RuntimeError, match="running already"):
            rl.autograd.profiler.profile().__enter__()
    assert next(e for e in p.events() if e.name == "aten::exp").cpu_parent is None
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        rl.profiler.profile().events()
    with rl.profiler.record_function("outside a profile"):
        pass
    p = rl.profiler.profile()
    p.start()
    rl.ones(1)
    p.toggle_collection_dynamic(False, [])
    rl.ones(1).exp()
    p.toggle_collection_dynamic(True, [])
    p.stop()
    assert "aten::exp" not in counts(p) and "aten::ones" in counts(p)


def test_results_are_the_same_under_the_profiler(rl):
    x = rl.linspace(-1, 1, 12, dtype=rl.float64).reshape(3, 4).requires_grad_()

    def gradient():
        x.grad = None
        y = (x @ x.t()).softmax(0) * 1
        y.mul_(2)
        y[0].add_(x.sum())
        (y * y).sum().backward()
        return x.grad

    plain = gradient()
    with rl.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True):
        assert rl.equal(gradient(), plain)


def test_floating_point_operations_are_counted(torch):
    x, im, w = torch.ones(3, 8), torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3)
    a, b = torch.ones(5, 6, 7), torch.ones(5, 7, 2)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_flops=True) as p:
        torch.mm(x, x.t())
        torch.bmm(a, b)
        torch.addmm(torch.ones(3), x, x.t())
        torch.nn.functional.conv2d(im, w, stride=2, padding=1)
        x + x
        x * 2
    flops = {e.key: e.flops for e in p.key_averages() if e.flops}
    assert flops == {
        "aten::mm": 2 * 3 * 3 * 8, "aten::bmm": 2 * 5 * 6 * 2 * 7, "aten::addmm": 2 * 3 * 3 * 8,
        "aten::conv2d": 2 * (2 * 4 * 4 * 4) * 27, "aten::add": 24, "aten::mul": 24,
    }  # fmt: skip
    assert "FLOPs" in p.key_averages().table()


def test_floating_point_operations_of_backward(rl):
    x, w = rl.ones(2, 3, 8, 8, requires_grad=True), rl.ones(6, 3, 3, 3, requires_grad=True)
    with rl.profiler.profile(with_flops=True) as p:
        rl.nn.functional.conv2d(x, w).sum().backward()
        rl.nn.functional.conv_transpose2d(rl.ones(1, 2, 3, 3), rl.ones(2, 4, 2, 2))
        rl.nn.functional.linear(rl.ones(2, 3), rl.ones(4, 3))
    flops = {e.name: e.flops for e in p.events() if e.flops}
    forward = 2 * (2 * 6 * 6 * 6) * 27
    assert flops["aten::conv2d"] == flops["aten::_conv_grad_input"] == flops["aten::_conv_grad_weight"] == forward
    assert flops["aten::conv_transpose2d"] == 2 * 18 * 16 and flops["aten::linear"] == 2 * 8 * 3
    assert all(e.input_shapes is None for e in p.events())


def test_modules_are_noted(rl):
    nn = rl.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    with rl.profiler.profile(with_modules=True) as p:
        net(rl.ones(1, 2))
        with pytest.raises(RuntimeError):
            net[1](rl.ones(1, 3))
        rl.ones(1).exp()
    where = [e.module_hierarchy for e in p.events() if e.name == "aten::linear"]
    assert where[:2] == ["Sequential.Linear", "Sequential.Sequential.Linear"]
    assert {e.name: e.module_hierarchy for e in p.events()}["aten::exp"] == ""
    assert sum(e.name == "nn.Module: Linear" for e in p.events()) == 3
    with rl.profiler.profile() as p:
        net(rl.ones(1, 2))
    assert not any(e.scope == 3 for e in p.events())


def test_emitters(torch):
    from importlib import import_module

    profiler = import_module(f"{torch.__name__}.autograd.profiler")
    with profiler.emit_itt() as itt:
        torch.ones(2)
    assert itt is not None
    with profiler.emit_nvtx(enabled=False) as nvtx:
        assert nvtx is None
    if not torch.cuda.is_available():
        with pytest.raises(AssertionError, match="CUDA"), profiler.emit_nvtx():
            pass
