"""Shipped models give the same scores on every processor."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from gcmem import onnx_models
from gcmem.onnx_models import open_model

DEPTH, WIDTH = 256, 64


WEIGHTS = np.random.default_rng(0).choice([-127, 127], size=(DEPTH, WIDTH)).astype(np.int8)


@pytest.fixture
def products(tmp_path: Path) -> Path:
    """A model that multiplies rows by WEIGHTS, both of 8 bits."""
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["rows", "weights"], ["sums"])],
        "products",
        [helper.make_tensor_value_info("rows", TensorProto.UINT8, [1, DEPTH])],
        [helper.make_tensor_value_info("sums", TensorProto.INT32, [1, WIDTH])],
        [numpy_helper.from_array(WEIGHTS, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "products.onnx"
    onnx.save(model, path)
    return path


def test_large_eight_bit_products_are_summed_exactly(products: Path) -> None:
    """Processors without VNNI would cut the sums off at 16 bits."""
    rows = np.full((1, DEPTH), 255, dtype=np.uint8)

    (sums,) = open_model(products, threads=1).run(None, {"rows": rows})

    np.testing.assert_array_equal(sums, rows.astype(np.int32) @ WEIGHTS.astype(np.int32))


@pytest.mark.parametrize(
    ("flags", "exact"), [("avx2 avx512f", True), ("avx512_vnni", False), ("avx_vnni", False)]
)
def test_the_slower_exact_product_is_asked_for_where_the_fast_one_is_wrong(
    products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, exact: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(f"flags : fpu {flags} sse2\n")
    monkeypatch.setattr(onnx_models, "CPU_INFO", tmp_path / "cpuinfo")
    options = open_model(products, threads=1).get_session_options()
    with nullcontext() if exact else pytest.raises(RuntimeError, match="x64quantprecision"):
        assert options.get_session_config_entry("session.x64quantprecision") == "1"
