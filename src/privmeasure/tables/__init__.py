"""Tables: public declarations of columns, and the way from cells to points and back."""

from privmeasure.tables.booleans import Boolean
from privmeasure.tables.categories import Category
from privmeasure.tables.columns import Column
from privmeasure.tables.fixed import Constant, Drop
from privmeasure.tables.layout import Layout
from privmeasure.tables.numbers import Integer, Number
from privmeasure.tables.places import Place
from privmeasure.tables.schema import Schema
from privmeasure.tables.times import Date, Datetime, Time

__all__ = [
    "Boolean",
    "Category",
    "Column",
    "Constant",
    "Date",
    "Datetime",
    "Drop",
    "Integer",
    "Layout",
    "Number",
    "Place",
    "Schema",
    "Time",
]
