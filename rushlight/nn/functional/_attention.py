"""Attention.

One rule everywhere: a query whose keys are all masked gets the output 0 and the gradient 0.
"""

from __future__ import annotations

import math

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def _masked_softmax(scores: Tensor, masked: bool) -> Tensor:
    if not masked:
        return scores.softmax(-1)
    empty = (scores == -math.inf).all(-1, keepdim=True)
    # rows without any key are filled before the softmax, so that neither value nor gradient becomes nan
    return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query key^T * scale + mask) value (Vaswani et al. 2017).

    Args:
        attn_mask: bool (True takes part) or added to the scores; broadcast to (*, L, S).
        dropout_p: dropout of the attention weights; applied whenever it is above 0.
        is_causal: a query attends only to keys up to its own position; excludes attn_mask.
        scale: 1 / sqrt(E) by default.
        enable_gqa: fewer heads in key and value, each used by several heads of query.

    Shapes: query (*, L, E), key (*, S, E), value (*, S, V) -> (*, L, V).

    >>> query, key, value = torch.zeros(1, 2), torch.ones(2, 2), torch.tensor([[0.0], [4.0]])
    >>> torch.nn.functional.scaled_dot_product_attention(query, key, value)
    tensor([[2.]])
    """
    op = "scaled_dot_product_attention"
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            f"{op}: expected at least 2 dimensions each, got {list(query.shape)}, {list(key.shape)} and "
            f"{list(value.shape)}"
        )
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(f"{op}: expected one dtype, got {query.dtype}, {key.dtype} and {value.dtype}")
    if is_causal and attn_mask is not None:
        raise RuntimeError(f"{op}: expected attn_mask or is_causal=True, got both")
    if scale is None:
        scale = 1.0 / math.sqrt(query.size(-1))
    if enable_gqa:
        heads = query.size(-3)
        if heads % key.size(-3) or heads % value.size(-3):
            raise RuntimeError(f"{op}: heads of query; expected a multiple of {key.size(-3)} (key), got {heads}")
        key, value = _share_heads(key, heads), _share_heads(value, heads)
    half = query.dtype in (rushlight.float16, rushlight.bfloat16)
    dtype = query.dtype
    if half:
        query, key, value = query.to(rushlight.float32), key.to(rushlight.float32), value.to(rushlight.float32)
    length, source = query.size(-2), key.size(-2)
    # the factor is split over both sides, which keeps half precision products in range
    root = math.sqrt(abs(scale))
    scores = (query * (root if scale >= 0 else -root)) @ (key.transpose(-2, -1) * root)
    masked = False
    if is_causal:
        position = rushlight.arange(max(length, source), device=query.device)
        later = position[:source].unsqueeze(0) > position[:length].unsqueeze(1)
        scores = scores.masked_fill(later, -math.inf)
    elif attn_mask is not None:
        masked = True
        if attn_mask.dtype == rushlight.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask.to(scores.dtype)
    if half and dropout_p == 0.0:
        # The exponentials are rounded before they weigh the values, their sum is not.
        high = scores.detach().amax(-1, True)
        exponentials = (scores - high.masked_fill(high == -math.inf, 0)).exp()
        total = exponentials.sum(-1, keepdim=True)
        out = exponentials.to(dtype).to(rushlight.float32) @ value / total
        return (out.masked_fill(total == 0, 0) if masked else out).to(dtype)
    weights = _masked_softmax(scores, masked)
    if dropout_p > 0.0:
        weights = rushlight.nn.functional.dropout(weights, dropout_p, True)
    out = weights @ value
    return out.to(dtype) if half else out


def _share_heads(x: Tensor, heads: int) -> Tensor:
    """(*, H, S, E) -> (*, heads, S, E): each head for several that follow one another."""
    each = heads // x.size(-3)
    return x.unsqueeze(-3).expand(*x.shape[:-2], each, *x.shape[-2:]).flatten(-4, -3)


def _additive(
    op: str, mask: Tensor | None, name: str, dtype: Any, other: Any = None, other_name: str = ""
) -> Tensor | None:
    """A bool mask (True is left out) as numbers to add."""
    if mask is None:
        return None
    if mask.dtype != rushlight.bool and not mask.is_floating_point():
        raise AssertionError(f"{op}: dtype of {name}; expected bool or floating point, got {mask.dtype}")
    if mask.is_floating_point():
        return mask
    return rushlight.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def _check_shapes(
    op: str, query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    """Whether the inputs are batched."""
    if query.dim() not in (2, 3):
        raise AssertionError(f"{op}: query; expected 2 (unbatched) or 3 dimensions, got {query.dim()}")
    batched = query.dim() == 3
    if not key.dim() == value.dim() == query.dim():
        raise AssertionError(
            f"{op}: key and value; expected {query.dim()} dimensions as query, got {key.dim()} and {value.dim()}"
        )
    if padding is not None and padding.dim() != query.dim() - 1:
        raise AssertionError(f"{op}: key_padding_mask; expected {query.dim() - 1} dimensions, got {padding.dim()}")
    if mask is not None:
        if mask.dim() not in (2, 3):
            raise AssertionError(f"{op}: attn_mask; expected 2 or 3 dimensions, got {mask.dim()}")
        if not batched and mask.dim() == 3 and list(mask.shape) != [heads, query.shape[0], key.shape[0]]:
            raise AssertionError(
                f"{op}: attn_mask; expected shape {[heads, query.shape[0], key.shape[0]]}, got {list(mask.shape)}"
            )
    return batched


def _project(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Query, key and value through one stacked weight (3 E, E)."""
    linear = rushlight.nn.functional.linear
    if key is value and query is key:
        return linear(query, weight, bias).chunk(3, -1)
    ws = weight.chunk(3)
    bs = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), ws, bs, strict=False))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What :class:`rushlight.nn.MultiheadAttention` computes, with its weights as arguments.

    Shapes: query (L, N, E) or (L, E), key and value (S, N, *) or (S, *) -> (L, N, E), weights (N, L, S) or (N, heads,
    L, S).
    """
    op = "multi_head_attention_forward"
    batched = _check_shapes(op, query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_kv, same_qk = key is value, query is key
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        # identity decides whether one projection can serve all three
        value = key if same_kv else value
        if same_qk:
            key, value = query, (query if same_kv else value)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    source = key.shape[0]
    padding = _additive(op, key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(f"{op}: is_causal is a hint about attn_mask; expected attn_mask as well, got None")
    # the hint can replace the mask when nothing else needs it
    causal_only = is_causal and padding is None and not need_weights
    mask = None if causal_only else _additive(op, attn_mask, "attn_mask", query.dtype)
    if embed != embed_dim_to_check:
        raise AssertionError(f"{op}: query; expected embedding dimension {embed_dim_to_check}, got {embed}")
    head = embed // num_heads
    if head * num_heads != embed:
        raise AssertionError(f"{op}: expected embed_dim divisible by num_heads, got {embed} and {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"{op}: key and value; expected one length and batch, got {key.shape[:2]}, {value.shape[:2]}"
            )
        for name, w in (
            ("q_proj_weight", q_proj_weight),
            ("k_proj_weight", k_proj_weight),
            ("v_proj_weight", v_proj_weight),
        ):
            if w is None:
                raise AssertionError(f"{op}: expected {name} with use_separate_proj_weight, got None")
        linear = rushlight.nn.functional.linear
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (
            linear(x, w, b)
            for x, w, b in zip((query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight), biases, strict=False)
        )
    else:
        if key.shape != value.shape:
            raise AssertionError(
                f"{op}: key and value; expected one shape, got {list(key.shape)} and {list(value.shape)}"
            )
        if in_proj_weight is None:
            raise AssertionError(f"{op}: expected in_proj_weight, got None")
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)
    if mask is not None:
        if mask.dim() == 2:
            if tuple(mask.shape) != (length, source):
                raise RuntimeError(f"{op}: attn_mask; expected shape {[length, source]}, got {list(mask.shape)}")
            mask = mask.unsqueeze(0)
        elif tuple(mask.shape) != (batch * num_heads, length, source):
            raise RuntimeError(
                f"{op}: attn_mask; expected shape {[batch * num_heads, length, source]}, got {list(mask.shape)}"
            )
    functional = rushlight.nn.functional

    def widened(m: Tensor | None) -> Tensor | None:
        return None if m is None else functional.pad(m, (0, 1))

    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError(f"{op}: expected no static_k and static_v together with bias_k and bias_v")
        k = rushlight.cat([k, bias_k.expand(1, batch, -1)])
        v = rushlight.cat([v, bias_v.expand(1, batch, -1)])
        mask, padding = widened(mask), widened(padding)
    elif bias_k is not None or bias_v is not None:
        raise AssertionError(f"{op}: expected both bias_k and bias_v, got one of them")
    heads = batch * num_heads
    q = q.reshape(length, heads, head).transpose(0, 1)
    k = (
        k.reshape(k.shape[0], heads, head).transpose(0, 1)
        if static_k is None
        else _static(op, "static_k", static_k, heads, head)
    )
    v = (
        v.reshape(v.shape[0], heads, head).transpose(0, 1)
        if static_v is None
        else _static(op, "static_v", static_v, heads, head)
    )
    if add_zero_attn:
        zeros = k.new_zeros((heads, 1, head))
        k = rushlight.cat([k, zeros], 1)
        v = rushlight.cat([v, zeros], 1)
        mask, padding = widened(mask), widened(padding)
    source = k.size(1)
    if padding is not None:
        if tuple(padding.shape) != (batch, source):
            raise AssertionError(f"{op}: key_padding_mask; expected shape {[batch, source]}, got {list(padding.shape)}")
        padding = padding.reshape(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(heads, 1, source)
        mask = padding if mask is None else mask + padding
    if not training:
        dropout_p = 0.0
    if need_weights:
        scores = (q * math.sqrt(1.0 / float(head))) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores + mask
        weights = _masked_softmax(scores, mask is not None)
        if dropout_p > 0.0:
            weights = functional.dropout(weights, dropout_p)
        out = weights @ v
    else:
        if mask is not None:
            if mask.size(0) == 1 and mask.dim() == 3:
                mask = mask.unsqueeze(0)
            else:
                mask = mask.reshape(batch, num_heads, -1, source)
        out = functional.scaled_dot_product_attention(
            q.reshape(batch, num_heads, length, head),
            k.reshape(batch, num_heads, source, head),
            v.reshape(batch, num_heads, source, head),
            mask,
            dropout_p,
            causal_only,
        ).reshape(heads, length, head)
    out = out.transpose(0, 1).reshape(length * batch, embed)
    out = functional.linear(out, out_proj_weight, out_proj_bias)
    out = out.reshape(length, batch, out.size(1))
    if not need_weights:
        return (out if batched else out.squeeze(1)), None
    weights = weights.reshape(batch, num_heads, length, source)
    if average_attn_weights:
        weights = weights.mean(1)
    if not batched:
        return out.squeeze(1), weights.squeeze(0)
    return out, weights


def _static(op: str, name: str, t: Tensor, heads: int, head: int) -> Tensor:
    if t.size(0) != heads or t.size(2) != head:
        raise AssertionError(f"{op}: {name}; expected shape [{heads}, S, {head}], got {list(t.shape)}")
    return t
