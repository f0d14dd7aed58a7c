"""Measures the shipped oracle on explicit pairs, families seen and unseen apart.

python -m training.kappa.evaluate [--part test]
"""

from __future__ import annotations

import argparse

from training.kappa.data import Family, held_out, load_families, seen

from gcmem.defaults import default_oracle
from gcmem.qualify import LabelledPair, qualify_pairs


def pairs_of(families: list[Family]) -> list[LabelledPair]:
    """Returns the explicit and look-alike pairs of families."""
    return [
        LabelledPair(
            older=p.older,
            newer=p.newer,
            conflict=p.conflict,
            question=p.question,
            category=p.category,
        )
        for family in families
        for p in family.pairs
    ]


def main() -> None:
    """Prints precision and recall of both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", default="test", choices=["dev", "test"])
    part = parser.parse_args().part
    families = load_families()
    for name, chosen in (("unseen", held_out(families, part)), ("seen", seen(families, part))):
        found = qualify_pairs(default_oracle(), pairs_of(chosen))
        print(
            f"{name} families: n {found.judged}, precision {found.precision}, recall {found.recall}"
        )


if __name__ == "__main__":
    main()
