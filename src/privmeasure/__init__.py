"""Private synthetic data that you can trust: pure epsilon-differential privacy, close in Wasserstein distance."""

from privmeasure.domains import Box, Categories, Circle, Finite, Integers, Nullable, Product, Sphere
from privmeasure.errors import PrivmeasureError
from privmeasure.mechanisms import PMM, PSMM, Recipe
from privmeasure.plan import Plan
from privmeasure.privacy import Privacy
from privmeasure.release import CellMeasure, load
from privmeasure.synthesizer import Synthesizer, synthesize

__version__ = "0.1.0"

__all__ = [
    "PMM",
    "PSMM",
    "Box",
    "Categories",
    "CellMeasure",
    "Circle",
    "Finite",
    "Integers",
    "Nullable",
    "Plan",
    "Privacy",
    "PrivmeasureError",
    "Product",
    "Recipe",
    "Sphere",
    "Synthesizer",
    "load",
    "synthesize",
]
