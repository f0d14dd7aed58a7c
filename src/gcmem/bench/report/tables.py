"""The tables of a report by name; each is a function of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gcmem.bench.report import tables_appendix, tables_bag, tables_main
from gcmem.bench.report.default_settings import defaults_of, mark_defaults
from gcmem.bench.report.table import RENDERERS, Table, to_csv, to_latex, to_markdown
from gcmem.bench.run.outcomes import Run
from gcmem.frozen import FrozenDict

__all__ = ["RENDERERS", "TABLES", "Table", "make_tables", "to_csv", "to_latex", "to_markdown"]

TABLES: Mapping[str, Callable[[Run], Table | None]] = FrozenDict(
    {
        "baselines": tables_main.baselines,
        "stm-lift": tables_main.stm_lift,
        "detectors": tables_main.detectors,
        "multi-factor": tables_main.multi_factor,
        "bag-of-facts": tables_main.bag_of_facts,
        "latency": tables_main.latency,
        "datasets": tables_main.datasets,
        "headline": tables_appendix.headline,
        "conditions": tables_appendix.conditions,
        "prompt-modes": tables_appendix.prompt_modes,
        "retrieval-recall": tables_appendix.retrieval_recall,
        "shadows": tables_appendix.shadows,
        "head-to-head": tables_appendix.head_to_head,
        "bag-headline": tables_bag.bag_headline,
        "bag-per-model": tables_bag.bag_per_model,
        "bag-ranking": tables_bag.bag_ranking,
        "bag-across": tables_bag.bag_across,
        "sweep": tables_appendix.sweep,
        "keep-rate": tables_appendix.keep_rate,
    }
)
"""Table functions by name; they return None if the run has no data for the table."""


def make_tables(run: Run) -> tuple[Table, ...]:
    """Returns all tables that the run has data for, in the registry's order.

    They show which settings are not the product's defaults.
    """
    defaults = defaults_of(run)
    made = (make(run) for make in TABLES.values())
    return tuple(mark_defaults(table, defaults) for table in made if table is not None)
