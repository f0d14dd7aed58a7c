"""Models of sentence-transformers, made here with random weights, on torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import BertWordPieceTokenizer
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    BertTokenizerFast,
)

from gcmem.encode import SentenceTransformersEncoder
from gcmem.errors import InvalidInputError
from gcmem.judge import NLIClassifier, PairwiseOracle

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "i", "live", "in", "porto", "lyon", "."]
OLD, NEW = "I live in Porto.", "I live in Lyon."


@pytest.fixture(scope="module", autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def small(**settings: object) -> BertConfig:
    return BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.5,
        **settings,
    )


def save_tokenizer(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    words = BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)
    words.save(str(folder / "tokenizer.json"))
    BertTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")).save_pretrained(folder)


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "nli"
    save_tokenizer(folder)
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    BertForSequenceClassification(small(num_labels=3, id2label=labels)).save_pretrained(folder)
    assert (folder / "model.safetensors").exists()
    return folder


def test_a_cross_encoder_scores_by_its_contradiction_in_both_orders(nli: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(nli).eval()
    tokenizer = AutoTokenizer.from_pretrained(nli)
    with torch.no_grad():
        both = [
            model(**tokenizer(*pair, return_tensors="pt")).logits.softmax(-1)[0, 0].item()
            for pair in ((OLD, NEW), (NEW, OLD))
        ]
    classifier = NLIClassifier(nli)
    (score,) = classifier.score("Where do I live?", [(OLD, NEW)])
    assert score == pytest.approx(sum(both) / 2, abs=1e-5)
    assert 0.01 < score < 0.99
    assert classifier.score("", [(NEW, OLD)]) == pytest.approx([score])
    assert PairwiseOracle(classifier).id.startswith("nli:nli:")


def test_broken_weights_are_an_error_that_names_the_file(nli: Path, tmp_path: Path) -> None:
    for file in nli.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InvalidInputError, match=r"model\.safetensors can't be loaded"):
        NLIClassifier(tmp_path).score("", [(OLD, NEW)])


def test_a_sentence_transformer_encodes_unit_vectors_and_counts_its_tokens(tmp_path: Path) -> None:
    save_tokenizer(tmp_path / "bert")
    BertModel(small()).save_pretrained(tmp_path / "bert")
    words = Transformer(str(tmp_path / "bert"))
    SentenceTransformer(modules=[words, Pooling(16)]).save(str(tmp_path / "encoder"))
    encoder = SentenceTransformersEncoder(str(tmp_path / "encoder"))
    vectors = encoder.encode([OLD, NEW])
    assert (encoder.dimensions, vectors.shape) == (16, (2, 16))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert encoder.encode([]).shape == (0, 16)
    assert encoder.count_tokens([OLD]) == [5]
