"""Sentence encoders in ONNX folders: the shipped one, and tiny ones made here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from gcmem import Memory
from gcmem.encode import MiniLMEncoder, OnnxEncoder
from gcmem.encode.minilm import FOLDERS, NEWEST
from gcmem.errors import InvalidInputError
from tests.conftest import day

TABLE = np.random.default_rng(7).normal(size=(30522, 6)).astype(np.float32)
IDS = TensorProto.INT64


def save(
    folder: Path,
    *,
    inputs: dict[str, int],
    outputs: dict[str, int],
    length: int | str = "t",
) -> Path:
    """Makes a model that looks each token up in TABLE; `outputs` maps names to ranks."""
    folder.mkdir()
    shutil.copy(FOLDERS[NEWEST] / "tokenizer.json", folder)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens"])]
    shapes: dict[int, list[Any]] = {2: ["b", 6], 3: ["b", length, 6]}
    made = []
    for name, rank in outputs.items():
        if rank == 2:
            nodes.append(helper.make_node("ReduceMax", ["tokens", "axis"], [name], keepdims=0))
        else:
            nodes.append(helper.make_node("Identity", ["tokens"], [name]))
        made.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes[rank]))
    values = [
        numpy_helper.from_array(TABLE, "table"),
        numpy_helper.from_array(np.array([1], dtype=np.int64), "axis"),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["b", length]) for name, kind in inputs.items()],
        made,
        [value for value in values if any(value.name in node.input for node in nodes)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return save(
        tmp_path / "tiny",
        inputs={"input_ids": IDS, "attention_mask": IDS, "token_type_ids": IDS},
        outputs={"last_hidden_state": 3},
    )


def rows_of(text: str) -> Any:
    return TABLE[Tokenizer.from_file(str(FOLDERS[NEWEST] / "tokenizer.json")).encode(text).ids]


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


def test_a_folder_with_the_shipped_model_gives_the_shipped_vectors() -> None:
    encoder, shipped = OnnxEncoder(FOLDERS[NEWEST], query_prefix="ask: "), MiniLMEncoder()
    texts = ["I never eat meat.", "word " * 1000]
    assert encoder.dimensions == shipped.dimensions
    assert np.array_equal(encoder.encode(texts), shipped.encode(texts))
    assert np.array_equal(encoder.encode_queries(["meat?"]), shipped.encode(["ask: meat?"]))
    assert encoder.count_tokens(texts) == shipped.count_tokens(texts)
    assert encoder.encode([]).shape == (0, 384)


def test_token_vectors_are_pooled_by_mean_or_by_the_first(tiny: Path) -> None:
    mean, cls = OnnxEncoder(tiny), OnnxEncoder(tiny, pooling="cls", document_prefix="doc: ")
    assert mean.dimensions == 6
    assert mean.encode(["I moved."])[0] == pytest.approx(unit(rows_of("I moved.").mean(axis=0)))
    assert cls.encode(["I moved."])[0] == pytest.approx(unit(rows_of("doc: I moved.")[0]))


def test_a_model_that_pools_by_itself_is_taken_at_its_word(tmp_path: Path) -> None:
    folder = save(
        tmp_path / "pooled",
        inputs={"input_ids": TensorProto.INT32},
        outputs={"token_embeddings": 3, "sentence_embedding": 2},
    )
    assert OnnxEncoder(folder).encode(["I moved."])[0] == pytest.approx(
        unit(rows_of("I moved.").max(axis=0))
    )


def test_a_model_of_fixed_length_is_padded_and_its_padding_not_pooled(tmp_path: Path) -> None:
    names = {"input_ids": IDS, "attention_mask": IDS}
    folder = save(tmp_path / "fixed", inputs=names, outputs={"x": 3}, length=16)
    encoder = OnnxEncoder(folder)
    assert encoder.encode(["I moved.", "word " * 50]).shape == (2, 6)
    assert encoder.encode(["I moved."])[0] == pytest.approx(unit(rows_of("I moved.").mean(axis=0)))


def test_an_id_names_everything_that_decides_a_vector(tiny: Path) -> None:
    first = OnnxEncoder(tiny)
    assert first.id.startswith("onnx:tiny@")
    ids = {
        first.id,
        OnnxEncoder(tiny, pooling="cls").id,
        OnnxEncoder(tiny, max_tokens=64).id,
        OnnxEncoder(tiny, query_prefix="q: ").id,
        OnnxEncoder(tiny, document_prefix="q: ").id,
        OnnxEncoder(tiny, name="other").id,
    }
    assert len(ids) == 6
    assert OnnxEncoder(tiny, workers=1).id == first.id
    with (tiny / "tokenizer.json").open("a") as file:
        file.write("\n")
    assert OnnxEncoder(tiny).id not in ids


def test_what_is_no_sentence_encoder_is_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no model\.onnx in"):
        OnnxEncoder(tmp_path)
    with pytest.raises(InvalidInputError, match="mean or cls"):
        OnnxEncoder(tiny, pooling="max")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="at least 8"):
        OnnxEncoder(tiny, max_tokens=2)
    odd = save(tmp_path / "odd", inputs={"input_ids": IDS, "pixels": IDS}, outputs={"x": 3})
    with pytest.raises(InvalidInputError, match="wants the inputs input_ids, pixels"):
        OnnxEncoder(odd)
    (tiny / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(InvalidInputError, match="can't run the model"):
        OnnxEncoder(tiny)


def test_a_memory_searches_with_it(tiny: Path) -> None:
    with Memory(":memory:", encoder=OnnxEncoder(tiny)) as memory:
        memory.add("The owl sleeps.", at=day(1))
        memory.add("Trams stop at midnight.", at=day(2))
        best = max(memory.candidates("the owl sleeps", k=1), key=lambda c: c.relevance)
        assert best.chunk.text == "The owl sleeps."
