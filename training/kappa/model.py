"""The scorer: a transformer that reads its texts together, with a head for each task."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from gcmem.judge.local.cross_encoder import END, PAD, START

MPNET_SHIFT = 4
MPNET_SPECIAL = {START: 0, PAD: 1, END: 2}


def load_backbone(checkpoint: Path, *, empty: bool = False) -> nn.Module:
    """Loads a transformer in full precision, or its shape alone."""
    if empty:
        config = AutoConfig.from_pretrained(checkpoint)
        return AutoModel.from_config(config, attn_implementation="eager", dtype=torch.float32)
    return AutoModel.from_pretrained(checkpoint, attn_implementation="eager", dtype=torch.float32)


def thinned(backbone: nn.Module, layers: int) -> nn.Module:
    """Keeps only that many of its layers, evenly spaced."""
    total = len(backbone.encoder.layer)
    kept = [round(i * (total - 1) / (layers - 1)) for i in range(layers)]
    backbone.encoder.layer = nn.ModuleList(backbone.encoder.layer[i] for i in kept)
    backbone.config.num_hidden_layers = layers
    return backbone


class Scorer(nn.Module):
    """Reads token ids of BERT's vocabulary, whatever the backbone's is.

    Returns four logits. From the first token: that the two texts contradict, that a text answers
    the question, and that no option is spoken for. From every token: that an option is spoken for,
    to be read at the separator that closes the option.
    """

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        width = backbone.config.hidden_size
        self.pair, self.answer, self.none, self.option = (_head(width) for _ in range(4))
        self.mpnet = backbone.config.model_type == "mpnet"

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        if self.mpnet:
            # MPNet's vocabulary is BERT's, moved up by its own special tokens.
            own = input_ids + MPNET_SHIFT
            for bert, special in MPNET_SPECIAL.items():
                own = torch.where(input_ids == bert, special, own)
            input_ids = own
        hidden = self.backbone(input_ids=input_ids, attention_mask=attention_mask)[0]
        first = hidden[:, 0]
        return (
            self.pair(first).squeeze(-1),
            self.answer(first).squeeze(-1),
            self.none(first).squeeze(-1),
            self.option(hidden).squeeze(-1),
        )


def _head(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Dropout(0.1), nn.Linear(width, 1))
