"""The test beds of the race, by name."""

from __future__ import annotations

from mixcma.experiments.race.beds import branches, categories, coco, designs, discrete, paper, practice
from mixcma.experiments.race.beds.base import Bed, Case, Challenge, Choice

__all__ = ["BEDS", "Bed", "Case", "Challenge", "Choice"]

_ALL = (paper.BED, coco.BED, designs.BED, discrete.BED, categories.BED, practice.BED, branches.BED)
BEDS: dict[str, Bed] = {bed.name: bed for bed in _ALL}
