"""Tables: public declarations of columns, and the way from cells to points and back."""

from privmeasure.tables.columns.booleans import Boolean
from privmeasure.tables.columns.categories import Category
from privmeasure.tables.columns.dates import Date
from privmeasure.tables.columns.derived import Derived
from privmeasure.tables.columns.fixed import Constant, Drop
from privmeasure.tables.columns.integers import Integer
from privmeasure.tables.columns.kinds import Column
from privmeasure.tables.columns.numbers import Number
from privmeasure.tables.columns.places import Place
from privmeasure.tables.columns.times import Datetime, Time
from privmeasure.tables.layout import Layout
from privmeasure.tables.schema import Schema

__all__ = [
    "Boolean",
    "Category",
    "Column",
    "Constant",
    "Date",
    "Datetime",
    "Derived",
    "Drop",
    "Integer",
    "Layout",
    "Number",
    "Place",
    "Schema",
    "Time",
]
