"""Small functions of tensors, each with the shapes of its arguments: what vmap and forward mode are tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch

F = torch.nn.functional

Program = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]
S = (3, 3)


def _assign(a: Any, b: Any) -> Any:
    y = a + 0 * b
    y[0] = b[1]
    y[:, 1] *= 2
    return y


def _views(a: Any) -> Any:
    y = a.clone()
    y[1:].mul_(3)
    y.t()[0].add_(y[1])
    return y


PROGRAMS: dict[str, Program] = {
    "exp": (torch.exp, (S,)),
    "abs": (torch.abs, (S,)),
    "sum": (torch.sum, (S,)),
    "mean": (torch.mean, (S,)),
    "prod": (torch.prod, (S,)),
    "max": (torch.max, (S,)),
    "min": (torch.min, (S,)),
    "amax": (lambda x: x.amax(0), (S,)),
    "argmax": (torch.argmax, (S,)),
    "argmax dim": (lambda x: x.argmax(0), (S,)),
    "var": (torch.var, (S,)),
    "std dim": (lambda x: x.std(1), (S,)),
    "var_mean": (lambda x: torch.var_mean(x, 0), (S,)),
    "logsumexp": (lambda x: x.logsumexp(0), (S,)),
    "softmax": (lambda x: x.softmax(0), (S,)),
    "log_softmax": (lambda x: x.log_softmax(-1), (S,)),
    "cumsum": (lambda x: x.cumsum(0), (S,)),
    "cumprod": (lambda x: x.cumprod(-1), (S,)),
    "cummax": (lambda x: tuple(x.cummax(0)), (S,)),
    "sort": (lambda x: tuple(x.sort(0)), (S,)),
    "topk": (lambda x: tuple(x.topk(2, 0)), (S,)),
    "median": (lambda x: tuple(x.median(0)), (S,)),
    "any": (lambda x: (x > 0).any(), (S,)),
    "all": (lambda x: (x > 0).all(1), (S,)),
    "nansum": (torch.nansum, (S,)),
    "vector_norm": (torch.linalg.vector_norm, (S,)),
    "t": (lambda x: x.t(), (S,)),
    "transpose": (lambda x: x.transpose(0, 1), (S,)),
    "permute": (lambda x: x.permute(2, 0, 1), ((2, 3, 4),)),
    "movedim": (lambda x: x.movedim(0, 1), (S,)),
    "flatten": (lambda x: x.flatten(), (S,)),
    "reshape": (lambda x: x.reshape(-1), (S,)),
    "view": (lambda x: x.view(2, -1), ((2, 2, 3),)),
    "unflatten": (lambda x: x.unflatten(0, (2, 3)), ((6, 2),)),
    "squeeze": (lambda x: x.squeeze(), ((1, 3, 1),)),
    "squeeze dim": (lambda x: x.squeeze(0), ((1, 3, 1),)),
    "unsqueeze": (lambda x: x.unsqueeze(1), (S,)),
    "expand": (lambda x: x.expand(5, 3, 3), (S,)),
    "repeat": (lambda x: x.repeat(2, 1, 2), (S,)),
    "tile": (lambda x: x.tile((2, 2)), (S,)),
    "flip": (lambda x: x.flip(0, 1), (S,)),
    "roll": (lambda x: torch.roll(x, 1), (S,)),
    "roll dims": (lambda x: torch.roll(x, (1, 2), (0, 1)), (S,)),
    "tril": (torch.tril, (S,)),
    "diagonal": (lambda x: x.diagonal(), (S,)),
    "unfold": (lambda x: x.unfold(0, 2, 1), ((5, 2),)),
    "as_strided": (lambda x: x.contiguous().as_strided((2, 2), (1, 2)), (S,)),
    "select": (lambda x: x[1], (S,)),
    "index expression": (lambda x: x[::2, None, -1], (S,)),
    "narrow": (lambda x: x.narrow(1, 1, 2), (S,)),
    "chunk": (lambda x: tuple(x.chunk(2)), (S,)),
    "split": (lambda x: tuple(x.split([1, 2], 1)), (S,)),
    "unbind": (lambda x: tuple(x.unbind(1)), (S,)),
    "clone": (torch.clone, (S,)),
    "double": (lambda x: x.double(), (S,)),
    "zeros_like": (lambda x: torch.zeros_like(x) + x, (S,)),
    "new_zeros": (lambda x: x.new_zeros(3) + x, (S,)),
    "fill": (lambda x: x * torch.zeros_like(x).fill_(2), (S,)),
    "index list": (lambda x: x[[0, 2]], (S,)),
    "index lists": (lambda x: x[[0, 2], :, [1, 0]], ((3, 2, 3),)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 1.5), (S,)),
    "views written": (_views, (S,)),
    "scalar": (lambda x: x * x + x, ((),)),
    "add": (torch.add, (S, S)),
    "add row": (torch.add, (S, (3,))),
    "add number": (torch.add, ((), (3,))),
    "add wide number": (lambda a, b: a.double() + b, ((), (3,))),
    "mul": (torch.mul, (S, S)),
    "div": (lambda a, b: a / (b * b + 1), (S, S)),
    "maximum": (torch.maximum, (S, S)),
    "where": (lambda a, b: torch.where(a > b, a, b), (S, S)),
    "mm": (torch.mm, ((2, 3), (3, 4))),
    "bmm": (torch.bmm, ((2, 3, 3), (2, 3, 1))),
    "mv": (torch.mv, (S, (3,))),
    "dot": (torch.dot, ((3,), (3,))),
    "outer": (torch.outer, ((3,), (2,))),
    "matmul": (torch.matmul, ((2, 3, 3), S)),
    "addmm": (lambda a, b: torch.addmm(a[0], a, b, beta=2, alpha=3), (S, S)),
    "baddbmm": (lambda a, b: torch.baddbmm(a, a, b), ((2, 3, 3), (2, 3, 3))),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), (S, S)),
    "linear": (F.linear, (S, (2, 3))),
    "linear bias": (lambda a, b: F.linear(a, b, b[:, 0]), ((4, 2, 3), (2, 3))),
    "cat": (lambda a, b: torch.cat([a, b]), (S, S)),
    "cat dim": (lambda a, b: torch.cat([a, b], 1), (S, S)),
    "stack": (lambda a, b: torch.stack([a, b], 1), (S, S)),
    "gather": (lambda a, b: a.gather(0, (b > 0).long()), (S, S)),
    "scatter": (lambda a, b: a.scatter(0, (b > 0).long(), 2.0), (S, S)),
    "scatter_add": (lambda a, b: a.scatter_add(0, (b > 0).long(), b), (S, S)),
    "index_select": (lambda a, b: a.index_select(0, (b > 0).long()[0]), (S, S)),
    "index_add": (lambda a, b: a.index_add(0, torch.tensor([0, 2]), b), (S, (2, 3))),
    "index tensor": (lambda a, b: a[(b > 0).long()[0]], (S, S)),
    "index tensor second": (lambda a, b: a[:, (b > 0).long()[0]], (S, S)),
    "index two tensors": (lambda a, b: a[(b > 0).long()[0], (b < 0).long()[1]], (S, S)),
    "masked_fill tensor": (lambda a, b: a.masked_fill(b > 0, -1.0), (S, S)),
    "layer_norm": (lambda a, b: F.layer_norm(a, (3,), b[0], b[1]), (S, S)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), ((5, 3),)),
    "conv2d": (lambda x, w: F.conv2d(x, w), ((2, 3, 4, 4), (4, 3, 3, 3))),
    "conv2d single": (lambda x, w: F.conv2d(x, w, padding=1), ((3, 4, 4), (4, 3, 3, 3))),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), ((2, 3, 4, 4),)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), ((3, 4, 4),)),
    "mse_loss": (F.mse_loss, (S, S)),
    "smooth_l1_loss": (lambda a, b: F.smooth_l1_loss(a, b, reduction="sum"), (S, S)),
    "bce": (lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid()), (S, S)),
    "cross_entropy": (lambda a, b: F.cross_entropy(a, (b[0] > 0).long()), (S, S)),
    "embedding": (lambda a, b: F.embedding((b > 0).long(), a), (S, S)),
    "cosine_similarity": (F.cosine_similarity, (S, S)),
    "attention": (lambda a, b: F.scaled_dot_product_attention(a, b, b), ((2, 3, 4), (2, 5, 4))),
    "gelu": (F.gelu, (S,)),
    "assign": (_assign, (S, S)),
}
