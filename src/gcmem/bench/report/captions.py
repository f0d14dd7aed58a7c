"""The titles and captions of a run's figures."""

from __future__ import annotations

from collections.abc import Mapping

CAPTIONS: Mapping[str, tuple[str, str]] = {
    "stm_effect": (
        "Effect of the short-term memory (STM)",
        "Accuracy of each reader without (open) and with (filled) the recency buffer, for each "
        "answer path. All datasets and prompt modes are pooled; a longer bar is a larger effect.",
    ),
    "shadows_lift": (
        "Shadows removed and lift",
        "Mean number of chunks that Φ_T removed per query against ΔGC, the accuracy of GC-Mem "
        "minus that of standard RAG. One point per reader, dataset and arrangement; filled points "
        "have every fact in the context.",
    ),
    "oracles": (
        "Value of the conflict oracle κ",
        "Accuracy of GC-Mem with each oracle (bars), and the oracle's F1 on the removed candidates "
        "(diamonds). Only instances that every oracle judged are counted; the dashed line is "
        "standard RAG on the same instances.",
    ),
    "recall": (
        "Retrieval recall by kind of chunk",
        "Share of an instance's old-state, new-state and distractor turns that reach the "
        "candidate set, by arrangement. Every path and reader gets the same candidates.",
    ),
    "lift_heatmap": (
        "ΔGC by reader and dataset",
        "GC-Mem minus standard RAG in percentage points, for each reader, dataset and "
        "arrangement. Warm cells are gains, cold cells are losses; × was not run.",
    ),
    "lift_forest": (
        "Intervals of ΔGC",
        "95% bootstrap intervals of the paired difference (BCa, 10,000 resamples of the "
        "instances per row). Filled circles: zero lies outside; open squares: zero lies inside.",
    ),
    "lift_families": (
        "ΔGC by family of entities",
        "GC-Mem minus standard RAG for each family of entities, all readers and datasets pooled, "
        "with 95% bootstrap intervals over instances; n counts instances.",
    ),
    "bag_readers": (
        "Bag of facts, by reader",
        "Accuracy with every old and new chunk in the context (k = ∞), by answer path; ΔGC in "
        "percentage points is next to each reader's name. Retrieval plays no part here.",
    ),
    "settings": (
        "ΔGC across arrangements",
        "GC-Mem minus standard RAG for each reader, by arrangement (how the candidates were "
        "retrieved), with 95% bootstrap intervals over instances.",
    ),
    "shadow_distribution": (
        "Distribution of shadows",
        "How many chunks Φ_T removed per query, as a share of the queries of each arrangement.",
    ),
    "standard_lift": (
        "Accuracy of standard RAG and lift",
        "Accuracy of standard RAG against ΔGC. One point per reader, dataset and arrangement; "
        "points on the left have the most to gain.",
    ),
    "accuracy_ratio": (
        "Accuracy against N:M",
        "Accuracy of each path by the number of old chunks per new chunk (log scale).",
    ),
    "accuracy_k": (
        "Accuracy against k",
        "Accuracy of each path by the number of chunks retrieved, over the conditions that were "
        "run at every k.",
    ),
    "keep_recall": (
        "Keep rate against κ's recall",
        "Share of the still-true candidates that are kept, against the share of the stale "
        "candidates that are removed. One point per dataset and arrangement; upper right is best.",
    ),
}
"""Title and caption of each figure, by its name in `PLOTS`."""
