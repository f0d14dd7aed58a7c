"""Sets the few channels apart whose values are so large that eight bits would blur all others.

Plain dynamic int8 scales a whole activation by its largest value. In the inner layer of a
feed-forward block that is one of a handful of channels, always the same ones, up to thirty times
as large as the rest. The product with those channels stays in 32 bits and is added; the others
are then rounded finely enough.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

FEW = 32
"""How many channels of a layer are set apart."""


class Apart(nn.Module):
    """A linear layer in two products: with the last few channels of its input, and the others."""

    def __init__(self, dense: nn.Linear) -> None:
        super().__init__()
        self.many = nn.Linear(dense.in_features - FEW, dense.out_features, bias=False)
        self.few = nn.Linear(FEW, dense.out_features)
        self.many.weight.data = dense.weight.data[:, :-FEW].contiguous()
        self.few.weight.data = dense.weight.data[:, -FEW:].contiguous()
        self.few.bias.data = dense.bias.data

    def forward(self, inner: torch.Tensor) -> torch.Tensor:
        return self.many(inner[..., :-FEW]) + self.few(inner[..., -FEW:])


@torch.no_grad()
def set_apart(backbone: nn.Module, read: Callable[[], object]) -> None:
    """Splits every feed-forward block of a transformer; `read` has it read typical texts.

    The channels change places, so that the large ones come last; what comes out is the same.
    """
    layers = list(backbone.encoder.layer)
    peaks: dict[nn.Module, torch.Tensor] = {}

    def watch(dense: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        peak = inputs[0].abs().flatten(0, -2).amax(0)
        peaks[dense] = torch.maximum(peaks.get(dense, peak), peak)

    hooks = [layer.output.dense.register_forward_pre_hook(watch) for layer in layers]
    read()
    for hook in hooks:
        hook.remove()
    for layer in layers:
        order = peaks[layer.output.dense].argsort()
        layer.intermediate.dense.weight.data = layer.intermediate.dense.weight.data[order]
        layer.intermediate.dense.bias.data = layer.intermediate.dense.bias.data[order]
        layer.output.dense.weight.data = layer.output.dense.weight.data[:, order]
        layer.output.dense = Apart(layer.output.dense)
