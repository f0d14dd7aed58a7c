"""Takes the mean of the weights of two exported oracles, one trained on from the other.

    python -m training.kappa.merge --one DIR --other DIR --checkpoint DIR --screen-checkpoint DIR

Writes model.onnx and screen.onnx to src/gcmem/models/kappa, for `training.kappa.export` to
calibrate. What the first knew and what the second learnt are both there, each a little weaker.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import normalize
from training.kappa.data import load_families
from training.kappa.export import OUTPUTS, TARGET, PairOnly, export_onnx, read_typical
from training.kappa.model import Scorer
from training.kappa.shipped import load_shipped
from training.kappa.train import build
from training.outliers import set_apart

LAYERS = 10


def read(path: Path, checkpoint: Path, layers: int | None) -> Scorer:
    """Returns an exported scorer."""
    scorer = build(checkpoint, layers, empty=True)
    load_shipped(scorer, path)
    return scorer.eval()


@torch.no_grad()
def put_in_order(backbone: nn.Module, like: nn.Module) -> None:
    """Gives the inner channels of the feed-forward blocks the places that they have in `like`.

    Setting large channels apart has moved them.
    """
    for own, other in zip(backbone.encoder.layer, like.encoder.layer, strict=True):
        order = (channels(other) @ channels(own).T).argmax(1)
        if len(order.unique()) < len(order):
            raise ValueError("the two were not trained on from each other")
        own.intermediate.dense.weight.data = own.intermediate.dense.weight.data[order]
        own.intermediate.dense.bias.data = own.intermediate.dense.bias.data[order]
        own.output.dense.weight.data = own.output.dense.weight.data[:, order]


def channels(layer: nn.Module) -> torch.Tensor:
    """Returns what goes into and comes out of each inner channel, as unit vectors."""
    both = [layer.intermediate.dense.weight, layer.output.dense.weight.T]
    return normalize(torch.cat(both, dim=1), dim=1)


@torch.no_grad()
def mean_of(one: Scorer, other: Scorer) -> Scorer:
    """Returns the first with the mean of both weights."""
    put_in_order(other.backbone, like=one.backbone)
    theirs = other.state_dict()
    one.load_state_dict(
        {
            k: (v + theirs[k]) / 2 if v.is_floating_point() else v
            for k, v in one.state_dict().items()
        }
    )
    return one


def main() -> None:
    """Reads both, and writes their mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--one", type=Path, required=True, help="a folder with both files")
    parser.add_argument("--other", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True, help="the model's shape")
    parser.add_argument("--screen-checkpoint", type=Path, required=True)
    parser.add_argument("--target", type=Path, default=TARGET)
    args = parser.parse_args()
    model, screen = (
        mean_of(*(read(folder / name, checkpoint, layers) for folder in (args.one, args.other)))
        for name, checkpoint, layers in (
            ("model.onnx", args.checkpoint, LAYERS),
            ("screen.onnx", args.screen_checkpoint, None),
        )
    )
    set_apart(model.backbone, partial(read_typical, model, load_families()))
    export_onnx(model, args.target / "model.onnx", outputs=OUTPUTS)
    export_onnx(PairOnly(screen), args.target / "screen.onnx", outputs=OUTPUTS[:1])


if __name__ == "__main__":
    main()
