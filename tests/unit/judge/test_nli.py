"""The NLI classifier on a model of one table, made here: each token adds its row to the logits."""

from __future__ import annotations

import json
import math
import sys
import types
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from gcmem.errors import InvalidInputError, MissingExtraError
from gcmem.judge import NLIClassifier

VOCABULARY = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "tea": 3, "coffee": 4}
# Rows are tokens, columns are entailment, neutral, contradiction.
IDS = """
<ir_version: 8, opset_import: ["": 17]>
nli (int64[n, s] input_ids, int64[n, s] attention_mask) => (float[n, 3] logits)
<float[5, 3] rows = {9,9,9, 0,0,0, 0,0,0, 1,0,0, 0,0,2}, int64[1] axis = {1}>
{
    looked = Gather(rows, input_ids)
    mask = Cast<to=1>(attention_mask)
    minus = Constant<value = int64[1] {-1}>()
    wide = Unsqueeze(mask, minus)
    seen = Mul(looked, wide)
    logits = ReduceSum<keepdims=0>(seen, axis)
}
"""
# Here a token counts only in the second sentence, so the two orders differ.
TYPES = """
<ir_version: 8, opset_import: ["": 17]>
nli (int64[n, s] input_ids, int32[n, s] token_type_ids)
    => (float[n, s, 3] other, float[n, 3] logits)
<float[5, 3] rows = {9,9,9, 0,0,0, 0,0,0, 1,0,0, 0,0,2}, int64[1] axis = {1}>
{
    minus = Constant<value = int64[1] {-1}>()
    other = Gather(rows, input_ids)
    types = Cast<to=1>(token_type_ids)
    wide = Unsqueeze(types, minus)
    seen = Mul(other, wide)
    logits = ReduceSum<keepdims=0>(seen, axis)
}
"""
LABELS = {"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"}


def softmax(*logits: float) -> list[float]:
    weights = [math.exp(logit) for logit in logits]
    return [weight / sum(weights) for weight in weights]


def write(folder: Path, graph: str = TYPES, *, model: str = "model.onnx", **config: Any) -> Path:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer.enable_padding(length=16)
    (folder / model).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.parser.parse_model(graph), str(folder / model))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"id2label": LABELS, **config}), "utf-8")
    return folder


def test_the_score_is_the_mean_of_both_orders(tmp_path: Path) -> None:
    classifier = NLIClassifier(write(tmp_path / "tiny"))
    scores = classifier.score("any", [("tea", "coffee"), ("coffee", "tea"), ("tea", "tea")])
    expected = (softmax(0, 0, 2)[2] + softmax(1, 0, 0)[2]) / 2
    assert scores == [
        pytest.approx(expected),
        pytest.approx(expected),
        pytest.approx(softmax(1, 0, 0)[2]),
    ]
    assert classifier.score("any", []) == []


def test_a_model_without_token_types_gets_none(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny", IDS, model="onnx/model.onnx")
    (score,) = NLIClassifier(folder).score("any", [("tea", "coffee")])
    assert score == pytest.approx(softmax(1, 0, 2)[2])


def test_labels_override_the_config(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny", id2label={"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"})
    with pytest.raises(InvalidInputError, match=r"'contra' \(LABEL_0, LABEL_1, LABEL_2\)"):
        NLIClassifier(folder)
    named = NLIClassifier(folder, labels={0: "contra", 1: "neutral", 2: "entail"})
    (score,) = named.score("any", [("tea", "tea")])
    assert score == pytest.approx(softmax(1, 0, 0)[0])


def test_the_id_names_the_model_and_changes_with_it(tmp_path: Path) -> None:
    one = NLIClassifier(write(tmp_path / "tiny")).id
    again = NLIClassifier(write(tmp_path / "tiny")).id
    other = NLIClassifier(write(tmp_path / "tiny", TYPES.replace("0,0,2", "0,0,3"))).id
    assert one == again != other
    assert one.startswith("nli:tiny:")
    assert one.endswith("@1")


def test_long_texts_are_cut_to_what_the_model_can_read(tmp_path: Path) -> None:
    classifier = NLIClassifier(write(tmp_path / "tiny", IDS, max_position_embeddings=5))
    (score,) = classifier.score("any", [("tea " * 50, "coffee " * 50)])
    assert score == pytest.approx(softmax(1, 0, 2)[2])


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("model.onnx", "no model.onnx and no onnx/model.onnx"),
        ("tokenizer.json", "no tokenizer.json"),
        ("config.json", "no config.json"),
    ],
)
def test_a_missing_file_is_named(tmp_path: Path, missing: str, named: str) -> None:
    folder = write(tmp_path / "tiny")
    (folder / missing).unlink()
    with pytest.raises(InvalidInputError, match=named):
        NLIClassifier(folder)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"id2label": {"x": "contradiction"}}'])
def test_a_config_that_is_of_no_use_is_named(tmp_path: Path, content: str) -> None:
    folder = write(tmp_path / "tiny")
    (folder / "config.json").write_text(content, "utf-8")
    with pytest.raises(InvalidInputError, match=r"config\.json"):
        NLIClassifier(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "tiny")
    (folder / name).write_text("junk", "utf-8")
    with pytest.raises(InvalidInputError, match=f"{name} can't be loaded"):
        NLIClassifier(folder).score("any", [("tea", "coffee")])


def test_a_model_that_does_not_fit_its_labels_or_inputs_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny")
    two = NLIClassifier(folder, labels={0: "contradiction", 1: "other"})
    with pytest.raises(InvalidInputError, match="3 outputs, but there are 2 labels"):
        two.score("any", [("tea", "coffee")])
    with pytest.raises(InvalidInputError, match="numbered from 0"):
        NLIClassifier(folder, labels={1: "contradiction"})
    write(folder, IDS.replace("attention_mask", "position_ids"))
    with pytest.raises(InvalidInputError, match="asks for position_ids"):
        NLIClassifier(folder).score("any", [("tea", "coffee")])


def without_onnx(folder: Path) -> Path:
    """Turns a folder into one of sentence-transformers, as far as its names go."""
    write(folder)
    (folder / "model.onnx").rename(folder / "model.safetensors")
    return folder


def test_a_folder_of_sentence_transformers_needs_its_extra(tmp_path: Path) -> None:
    classifier = NLIClassifier(without_onnx(tmp_path))
    with pytest.raises(MissingExtraError, match="sentence-transformers"):
        classifier.score("", [("tea", "coffee")])


def test_a_cross_encoder_of_sentence_transformers_is_read_in_both_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With torch itself: `make test-torch`."""

    class CrossEncoder:
        def __init__(self, folder: str, **_: Any) -> None:
            assert folder == str(tmp_path)

        def predict(self, pairs: list[tuple[str, str]], **_: Any) -> list[list[float]]:
            return [
                [1.0, 0.0, 2.0] if pair == ("tea", "coffee") else [0.0, 0.0, 0.0] for pair in pairs
            ]

    module = types.SimpleNamespace(CrossEncoder=CrossEncoder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    (score,) = NLIClassifier(without_onnx(tmp_path)).score("", [("tea", "coffee")])
    assert score == pytest.approx((softmax(1, 0, 2)[2] + 1 / 3) / 2)
