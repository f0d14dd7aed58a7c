"""The scorer: a transformer that reads its texts together, and one logit from the first token."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from transformers import AutoModel


def load_backbone(checkpoint: Path, *, layers: int | None = None) -> nn.Module:
    """Loads a transformer; with `layers`, only that many of its layers, evenly spaced."""
    backbone = AutoModel.from_pretrained(
        checkpoint, attn_implementation="eager", dtype=torch.float32
    )
    if layers is not None:
        total = len(backbone.encoder.layer)
        kept = [round(i * (total - 1) / (layers - 1)) for i in range(layers)]
        backbone.encoder.layer = nn.ModuleList(backbone.encoder.layer[i] for i in kept)
        backbone.config.num_hidden_layers = layers
    return backbone


class Scorer(nn.Module):
    """Scores one row: question, older and newer, or question with option and sentence."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        width = backbone.config.hidden_size
        self.head = nn.Sequential(
            nn.Linear(width, width), nn.Tanh(), nn.Dropout(0.1), nn.Linear(width, 1)
        )

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.backbone(input_ids=input_ids, attention_mask=attention_mask)[0]
        return self.head(hidden[:, 0]).squeeze(-1)
