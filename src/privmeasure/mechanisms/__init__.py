"""The gate: the only rooms that turn private counts into public measures."""

from privmeasure.mechanisms.base import Mechanism
from privmeasure.mechanisms.columns import ColumnTree
from privmeasure.mechanisms.pmm import PMM
from privmeasure.mechanisms.psmm import PSMM
from privmeasure.plans.recipe import Recipe

__all__ = ["PMM", "PSMM", "ColumnTree", "Mechanism", "Recipe"]
