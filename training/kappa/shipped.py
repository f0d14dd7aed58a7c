"""Reads the weights of an exported scorer back: training can go on from what was shipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

WRAPPED = "scorer."
"""How the names of a scorer begin that was exported without its other heads."""


def load_shipped(model: nn.Module, path: Path) -> None:
    """Fills a scorer with the weights of a file; heads that the file lacks stay as they are."""
    own = model.state_dict()
    found = {
        name: torch.from_numpy(value.astype(np.float32))
        for name, value in weights_of(onnx.load(path).graph)
    }
    found |= {
        f"{place}.{kind}": value
        for place in [n.removesuffix(".many.weight") for n in found if n.endswith(".many.weight")]
        for kind, value in (
            ("weight", torch.cat([found[f"{place}.many.weight"], found[f"{place}.few.weight"]], 1)),
            ("bias", found[f"{place}.few.bias"]),
        )
    }
    found = {name: value for name, value in found.items() if name in own}
    needed = [n for n in own if n.startswith(("backbone.", "pair.")) and ".pooler." not in n]
    if missing := [name for name in needed if name not in found]:
        raise ValueError(f"{path} has no weights for {missing[:3]}")
    model.load_state_dict(
        {name: value.reshape(own[name].shape) for name, value in found.items()}, strict=False
    )


def weights_of(graph: onnx.GraphProto) -> Iterator[tuple[str, np.ndarray]]:
    """Returns the weights by their names in the scorer, in full precision."""
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for name, value in tensors.items():
        if name.endswith(".weight_quantized"):
            plain = name.removesuffix("_quantized")
            yield plain.removeprefix(WRAPPED), _plain(tensors, plain)
        elif value.dtype == np.float32:
            yield name.removeprefix(WRAPPED), value
    for node in graph.node:
        place = node.name.strip("/").rpartition("/")[0].replace("/", ".").removeprefix(WRAPPED)
        # A head's name stands in its layers' names too: pair.pair.0.
        first, _, rest = place.partition(".")
        place = rest if rest.startswith(f"{first}.") else place
        if node.op_type == "MatMulNBits":
            yield f"{place}.weight", _in_blocks(*(tensors[name] for name in node.input[1:3]))
        elif node.op_type == "MatMul" and place.endswith(".few"):
            yield f"{place}.weight", tensors[node.input[1]].T
        elif node.op_type == "MatMulInteger":
            yield f"{place}.weight", _plain(tensors, node.input[1].removesuffix("_quantized")).T


def _plain(tensors: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Returns a tensor that was rounded with one scale, or one a column."""
    zero = tensors[f"{name}_zero_point"].astype(np.float32)
    return (tensors[f"{name}_quantized"].astype(np.float32) - zero) * tensors[f"{name}_scale"]


def _in_blocks(values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Returns a matrix that was rounded in blocks, around 128."""
    full = (values.astype(np.float32) - 128) * scales.reshape(*values.shape[:2], 1)
    return full.reshape(len(values), -1)
