"""Layers, activations and losses as functions.

A name is looked up at its first use, in this order, and then kept:
1. an operation whose record says that it is public here (``_C._nn``): then the functional *is* the operation, without
   a Python frame around it;
2. a composition in one of the files here.
"""

from __future__ import annotations

import importlib

import rushlight._C as _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# file -> the functionals in it; a test keeps this equal to the files' own __all__
_FILES = {
    "_activation": (
        "celu elu glu gumbel_softmax hardsigmoid hardswish hardtanh leaky_relu log_softmax "
        "mish relu relu6 rrelu rrelu_ selu sigmoid silu softmax softmin softsign tanh tanhshrink "
        "threshold"
    ),
    "_dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
    "_embedding": "embedding embedding_bag one_hot",
    "_loss": (
        "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy gaussian_nll_loss huber_loss kl_div "
        "l1_loss linear_cross_entropy mse_loss nll_loss poisson_nll_loss smooth_l1_loss"
    ),
    "_margin_loss": (
        "cosine_embedding_loss ctc_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
        "multilabel_margin_loss "
        "multilabel_soft_margin_loss soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss"
    ),
    "_norm": "batch_norm group_norm instance_norm layer_norm local_response_norm normalize rms_norm",
    "_pool": (
        "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices "
        "adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices "
        "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
        "fractional_max_pool3d_with_indices lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool1d_with_indices "
        "max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d"
    ),
    "_arrange": ("bilinear channel_shuffle conv_tbc native_channel_shuffle pixel_shuffle pixel_unshuffle"),
    "_attention": "multi_head_attention_forward scaled_dot_product_attention",
    "_distance": "cosine_similarity",
    "_recurrent": "gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell",
    "_resize": "affine_grid grid_sample interpolate upsample upsample_bilinear upsample_nearest",
    "_image": "fold pad unfold",
}

_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}

# the cells are reachable for modules, but PyTorch has them elsewhere
__all__ = sorted({*_FILE_OF, *vars(_C._nn)} - set(_FILES["_recurrent"].split()))


def __getattr__(name: str) -> Any:
    value = getattr(_C._nn, name, None)
    if value is None:
        if name in _FILE_OF:
            value = getattr(importlib.import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        elif name in _FILES:
            value = importlib.import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
