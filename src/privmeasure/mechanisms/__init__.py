"""The gate: the only rooms that turn private counts into public measures."""

from privmeasure.mechanisms.base import Mechanism
from privmeasure.mechanisms.column_tree import ColumnTree
from privmeasure.mechanisms.pmm import PMM
from privmeasure.mechanisms.psmm import PSMM
from privmeasure.mechanisms.recipe import Recipe

__all__ = ["PMM", "PSMM", "ColumnTree", "Mechanism", "Recipe"]
