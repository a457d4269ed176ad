"""FT-Transformer by the authors' own package (rtdl_revisiting_models)."""

from __future__ import annotations

from typing import Any

import rtdl_revisiting_models
import torch

from fairbench.components.algorithms.estimators.tabular_network import Shape, TabularNetwork


class _Trunk(torch.nn.Module):
    """All but the last linear layer, which is apart so that a scale can leave the rest alone."""

    def __init__(self, network: rtdl_revisiting_models.FTTransformer, width: int) -> None:
        super().__init__()
        self.network = network
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, numbers: torch.Tensor | None, codes: torch.Tensor | None) -> torch.Tensor:
        """Return what the network makes of each row, (n, width)."""
        return torch.relu(self.norm(self.network(numbers, codes)))


def build(learner: Any, shape: Shape) -> TabularNetwork:
    """Return the untrained network, drawn from torch's generator."""
    numbers = shape.numbers.shape[1]
    network = rtdl_revisiting_models.FTTransformer(
        n_cont_features=numbers,
        cat_cardinalities=shape.cardinalities,
        d_out=None,
        n_blocks=learner.blocks,
        d_block=learner.width,
        attention_n_heads=learner.heads,
        attention_dropout=learner.attention_dropout,
        ffn_d_hidden_multiplier=4 / 3,
        ffn_dropout=learner.dropout,
        residual_dropout=0.0,
    )
    trunk = _Trunk(network, learner.width)
    head = torch.nn.Linear(learner.width, shape.outputs)
    plain = [*network.make_parameter_groups()[1]["params"], *trunk.norm.parameters(), head.bias]
    return TabularNetwork(trunk, head, numbers, undecayed=plain)
