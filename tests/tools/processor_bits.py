"""Which random draws of PyTorch change their last bits with the processor's instruction set.

    python tests/tools/processor_bits.py

PyTorch is run as on this processor, and again as on a lesser one (MKL_ENABLE_INSTRUCTIONS, ATEN_CPU_CAPABILITY); each
draw is hashed. A draw whose hash changes cannot be equalled bit for bit by a program that does not know the processor
PyTorch ran on. The entries concerned are "rounded" in tests/parity_floor.json: they must agree within 1e-6.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

SETTINGS = ({}, {"MKL_ENABLE_INSTRUCTIONS": "AVX2"}, {"MKL_CBWR": "COMPATIBLE"}, {"ATEN_CPU_CAPABILITY": "default"})


def draws() -> None:
    import torch

    functional = torch.nn.functional
    attention = torch.nn.MultiheadAttention(4, 2, dropout=0.5)

    def multi_head() -> torch.Tensor:
        attention._reset_parameters()
        sequence = torch.randn(3, 2, 4)
        result: torch.Tensor = attention(sequence, sequence, sequence)[0]
        return result

    cases = {
        "rand": lambda: torch.rand(7),
        "exponential_": lambda: torch.empty(9).exponential_(),
        "dropout": lambda: functional.dropout(torch.ones(50)),
        "nn.init.xavier_uniform_": lambda: torch.nn.init.xavier_uniform_(torch.empty(5, 7)),
        "nn.init.orthogonal_": lambda: torch.nn.init.orthogonal_(torch.empty(5, 7)),
        "gumbel_softmax": lambda: functional.gumbel_softmax(torch.randn(5, 7)),
        "scaled_dot_product_attention": lambda: functional.scaled_dot_product_attention(
            torch.randn(4, 3, 8), torch.randn(4, 6, 8), torch.randn(4, 6, 8), dropout_p=0.5
        ),
        "multi_head_attention_forward": multi_head,
    }
    for name, draw in cases.items():
        digest = hashlib.sha256()
        for seed in (0, 1, 12345):
            torch.manual_seed(seed)
            digest.update(draw().detach().contiguous().numpy().tobytes())
        print(name, digest.hexdigest()[:12])


def main() -> int:
    found: dict[str, list[str]] = {}
    for setting in SETTINGS:
        environment = {**os.environ, **setting}
        command = [sys.executable, __file__, "draw"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        for line in run.stdout.splitlines():
            name, digest = line.split()
            found.setdefault(name, []).append(digest)
    for name, digests in found.items():
        different = len({*digests})
        print(f"{name:32} {different} different results on {len(digests)} settings")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        draws()
    else:
        raise SystemExit(main())
