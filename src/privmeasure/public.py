"""Every public name, gathered. `import privmeasure` loads this room when the first of them is asked for."""

from privmeasure.domains import Box, Categories, Circle, Finite, Integers, Nullable, Product, Sphere
from privmeasure.errors import PrivmeasureError
from privmeasure.evaluation import evaluate
from privmeasure.ledger import Ledger
from privmeasure.mechanisms import PMM, PSMM, Recipe
from privmeasure.notebook import ProgressBar
from privmeasure.plans.plan import Plan
from privmeasure.privacy import Privacy
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.load import load
from privmeasure.releases.spark import sample_on_spark
from privmeasure.releases.table import TableRelease
from privmeasure.sources.databases import Query
from privmeasure.sources.union import Union
from privmeasure.synthesizer import Synthesizer, synthesize
from privmeasure.tables import (
    Boolean,
    Category,
    Constant,
    Date,
    Datetime,
    Derived,
    Drop,
    Integer,
    Number,
    Place,
    Schema,
    Time,
)
from privmeasure.typical import typical_error

__all__ = [
    "PMM",
    "PSMM",
    "Boolean",
    "Box",
    "Categories",
    "Category",
    "CellMeasure",
    "Circle",
    "Constant",
    "Date",
    "Datetime",
    "Derived",
    "Drop",
    "Finite",
    "Integer",
    "Integers",
    "Ledger",
    "Nullable",
    "Number",
    "Place",
    "Plan",
    "Privacy",
    "PrivmeasureError",
    "Product",
    "ProgressBar",
    "Query",
    "Recipe",
    "Schema",
    "Sphere",
    "Synthesizer",
    "TableRelease",
    "Time",
    "Union",
    "evaluate",
    "load",
    "sample_on_spark",
    "synthesize",
    "typical_error",
]
