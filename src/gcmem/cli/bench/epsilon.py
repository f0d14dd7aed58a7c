"""gcmem bench epsilon"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gcmem.bench.report.figures import draw, histogram
from gcmem.bench.theory.epsilon import epsilon as measure
from gcmem.cli.bench.sources import Dataset, Out, instances_of
from gcmem.cli.options import AsJson
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.defaults import default_encoder


def epsilon(dataset: Dataset, out: Out = Path("bench-epsilon"), as_json: AsJson = False) -> None:
    """Measure how similar old and new state are to the retriever, and draw a histogram."""
    instances = instances_of(dataset)
    with progress_bar("embedding") as advance:
        found = measure(default_encoder(), instances, progress=advance)
    name = f"epsilon_{Path(dataset).stem}"
    written = draw(
        out,
        name,
        partial(
            histogram,
            values=found.values,
            x="|sim(q, old) - sim(q, new)|",
            marks={"median": found.median, "90 %": found.p90},
        ),
    )
    figures = {
        "dataset": dataset,
        "instances": found.instances,
        "pairs": len(found.values),
        "mean": found.mean,
        "median": found.median,
        "p90": found.p90,
        "stale_closer": found.stale_closer,
        "files": [str(path) for path in written],
    }
    if as_json:
        print_json(figures)
        return
    console.print(
        f"ε over {len(found.values)} pairs of {found.instances} instances: mean {found.mean:.3f}, "
        f"median {found.median:.3f}, 90 % below {found.p90:.3f}; the old chunk is closer "
        f"in {found.stale_closer:.1%}"
    )
    console.print(f"written: {', '.join(str(path) for path in written)}")
