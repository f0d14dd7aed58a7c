"""Shipped models give the same scores on every processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from gcmem.onnx_models import open_model

DEPTH, WIDTH = 256, 64


def test_large_eight_bit_products_are_summed_exactly(tmp_path: Path) -> None:
    """Processors without VNNI would cut the sums off at 16 bits."""
    weights = np.random.default_rng(0).choice([-127, 127], size=(DEPTH, WIDTH)).astype(np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["rows", "weights"], ["sums"])],
        "products",
        [helper.make_tensor_value_info("rows", TensorProto.UINT8, [1, DEPTH])],
        [helper.make_tensor_value_info("sums", TensorProto.INT32, [1, WIDTH])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "products.onnx"
    onnx.save(model, path)
    rows = np.full((1, DEPTH), 255, dtype=np.uint8)

    (sums,) = open_model(path, threads=1).run(None, {"rows": rows})

    np.testing.assert_array_equal(sums, rows.astype(np.int32) @ weights.astype(np.int32))
