"""What every log must refuse: chunks that some store can't keep, vectors that break a search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcmem.errors import EncoderError, InvalidInputError, StoreError
from gcmem.protocols import Store
from gcmem.testing.fakes import HashEncoder
from gcmem.testing.store_harness import EVERYTHING, StoreHarness, chunk, texts

UNSTORABLE: dict[str, dict[str, Any]] = {
    "NUL in a text": {"text": "a\x00b"},
    "no text": {"text": None},
    "NUL in an id": {"id": "a\x00b"},
    "empty id": {"id": ""},
    "number as id": {"id": 5},
    "no speaker": {"speaker": None},
    "NUL in a speaker": {"speaker": "a\x00"},
    "lone surrogate in a session": {"session": "\ud800"},
    "number as session": {"session": 5},
    "no event time": {"at": None},
    "no recording time": {"recorded_at": None},
    "trust that is no number": {"trust": "high"},
    "NUL in a metadata key": {"metadata": {"a\x00": 1}},
    "NUL in a metadata value": {"metadata": {"a": "b\x00c"}},
    "NUL deep in the metadata": {"metadata": {"a": [{"b": ["c\x00"]}]}},
    "NUL in a deep metadata key": {"metadata": {"a": [{"b\x00": 1}]}},
    "lone surrogate in the metadata": {"metadata": {"a": "\udfff"}},
    "metadata that is no JSON": {"metadata": {"a": {1, 2}}},
    "NaN in the metadata": {"metadata": {"a": [float("nan")]}},
    "number as a metadata key": {"metadata": {5: 1}},
}


class DoorSuite(StoreHarness):
    """Requirements on refusals: a bad batch is refused as a whole, with an error that says why."""

    @pytest.mark.parametrize("fields", UNSTORABLE.values(), ids=UNSTORABLE)
    def test_what_can_not_be_stored_is_refused(self, store: Store, fields: dict[str, Any]) -> None:
        """A bad chunk is refused with its whole batch, even by a store that could keep it."""
        (kept,) = self.put(store, chunk("kept"))
        vectors = self.encoder.encode(["good", "bad"])
        batch = [chunk("good"), replace(chunk("bad"), **fields)]
        with pytest.raises(InvalidInputError):
            store.append(batch, vectors, encoder_id=self.encoder.id)
        assert list(store.log.scan(EVERYTHING)) == [kept]

    @pytest.mark.parametrize(
        "metadata", [{"a": "b\x00c"}, {"a\x00": 1}, {"a": ["\ud800"]}, {"a": {1, 2}}, 5, None]
    )
    def test_metadata_that_can_not_be_stored_does_not_replace_any(
        self, store: Store, metadata: Any
    ) -> None:
        """set_metadata has the same rule as append."""
        (kept,) = self.put(store, chunk("kept", metadata={"a": 1}))
        with pytest.raises(InvalidInputError):
            store.log.set_metadata(kept.id, metadata)
        assert list(store.log.scan(EVERYTHING)) == [kept]

    @pytest.mark.parametrize(
        "spoil",
        [
            pytest.param(lambda v: v * np.float32(np.nan), id="not finite"),
            pytest.param(lambda v: v * 2, id="not of length one"),
            pytest.param(lambda v: v * 0, id="zero"),
            pytest.param(lambda v: v[:-1], id="one too few"),
            pytest.param(lambda v: np.vstack([v, v]), id="too many"),
            pytest.param(lambda v: v[0], id="one axis"),
            pytest.param(lambda v: v.astype(np.int64), id="whole numbers"),
            pytest.param(lambda v: [["a"], ["b"]], id="no numbers"),
            pytest.param(lambda v: [[1.0], [0.6, 0.8]], id="ragged"),
            pytest.param(lambda v: None, id="nothing"),
        ],
    )
    def test_vectors_that_can_not_be_searched_are_refused(self, store: Store, spoil: Any) -> None:
        """The error names the encoder, nothing is stored, and searches go on as before."""
        self.put(store, chunk("kept"))
        vectors = spoil(self.encoder.encode(["good", "bad"]))
        with pytest.raises(EncoderError, match=self.encoder.id):
            store.append([chunk("good"), chunk("bad")], vectors, encoder_id=self.encoder.id)
        assert texts(store.log.scan(EVERYTHING)) == ["kept"]
        assert self.found(store, "kept") == ["kept"]

    def test_vectors_of_another_width_are_refused(self, store: Store) -> None:
        """Even if they claim to come from the same encoder."""
        self.put(store, chunk("kept"))
        vectors = HashEncoder(dimensions=self.encoder.dimensions - 1).encode(["short"])
        with pytest.raises((EncoderError, StoreError)):
            store.append([chunk("short")], vectors, encoder_id=self.encoder.id)
        assert texts(store.log.scan(EVERYTHING)) == ["kept"]
        assert self.found(store, "kept") == ["kept"]

    @pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
    def test_vectors_of_any_float_kind_are_stored_alike(self, store: Store, kind: Any) -> None:
        """An encoder may compute in another precision; what is stored is the same."""
        self.put(store, chunk("tea"))
        vectors = self.encoder.encode(["coffee"]).astype(kind)
        store.append([chunk("coffee")], vectors, encoder_id=self.encoder.id)
        assert sorted(self.found(store, "tea")) == ["coffee", "tea"]
        assert self.found(store, "coffee")[0] == "coffee"

    def test_a_reindex_with_a_broken_encoder_changes_nothing(self, store: Store) -> None:
        """The old vectors stay in use."""

        class Broken:
            id = "broken@1"
            dimensions = self.encoder.dimensions
            count_tokens = self.encoder.count_tokens

            def encode(self, texts: Any) -> Any:
                return np.full((len(texts), self.dimensions), np.nan, dtype=np.float32)

        self.put(store, chunk("tea"))
        with pytest.raises(EncoderError, match="broken@1"):
            store.index.rebuild(Broken())
        assert store.index.encoder_id == self.encoder.id
        assert self.found(store, "tea") == ["tea"]
