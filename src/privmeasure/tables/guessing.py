"""What the name of a column alone proposes: a kind, and round bounds that hold for most tables. Nothing else is asked.

A name is split into words ("patientAge_at_visit": patient, age, at, visit). What follows "of", "at", "in", "per" or
"since" is left out ("year_of_birth" is a year), and of the words that are left the last one that is on the list
decides, as English does: "age_group" is a group, "patient_age" an age. Words for units decide if no other does.

Guarantee:  privacy  a function of names and storage types, which are public: no value is looked at
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from privmeasure.tables.arrow import plain_type
from privmeasure.tables.columns.base import TO_FILL_IN, Sketch
from privmeasure.tables.columns.booleans import Boolean
from privmeasure.tables.columns.categories import Category
from privmeasure.tables.columns.dates import Date
from privmeasure.tables.columns.fields import ColumnError
from privmeasure.tables.columns.fixed import Drop
from privmeasure.tables.columns.integers import Integer
from privmeasure.tables.columns.kinds import from_fields
from privmeasure.tables.columns.numbers import Number
from privmeasure.tables.columns.places import Place
from privmeasure.tables.columns.times import Datetime

if TYPE_CHECKING:
    import pyarrow as pa

CHECK_IT = "Guessed from the name alone: check it."
LINKS = {"of", "at", "in", "per", "since"}
"""What follows them says more about the word before."""
QUESTIONS = {"is", "has", "was", "had"}
"""A name that begins so is answered by yes or no."""
LATITUDES, LONGITUDES = ("lat", "latitude"), ("lon", "lng", "long", "longitude")
STAND_INS: dict[str, Any] = {"low": 0, "high": 2, "values": ["0"]}
"""For gaps, to ask whether a kind can have a storage type at all."""


@dataclass(frozen=True, slots=True)
class NameGuess:
    """Words that speak for a kind of column, the fields that they propose, and what to ask oneself."""

    words: str
    fields: Mapping[str, Any]
    remark: str = ""


def _dates(first: int, last: int) -> dict[str, date]:
    return {"low": date(first, 1, 1), "high": date(last, 12, 31)}


NAME_GUESSES = (
    NameGuess("age", Integer.sketch(low=0, high=120, unit="year")),
    NameGuess("year yr", Integer.sketch(low=1900, high=2100)),
    NameGuess("month", Integer.sketch(low=1, high=12)),
    NameGuess("day", Integer.sketch(low=1, high=31)),
    NameGuess("hour", Integer.sketch(low=0, high=23)),
    NameGuess("minute second", Integer.sketch(low=0, high=59)),
    NameGuess("children kids siblings", Integer.sketch(low=0, high=20)),
    NameGuess("count visits goals points runs games hits", Integer.sketch(low=0, high=TO_FILL_IN)),
    NameGuess("rank round", Integer.sketch(low=1, high=TO_FILL_IN)),
    NameGuess("lat latitude", Number.sketch(low=-90, high=90), "With a longitude beside it, both are one place."),
    NameGuess("lon lng longitude", Number.sketch(low=-180, high=180), "With a latitude beside it, both are one place."),
    NameGuess("percent percentage pct", Number.sketch(low=0, high=100)),
    NameGuess("share fraction probability", Number.sketch(low=0, high=1)),
    NameGuess("bmi", Number.sketch(low=10, high=100, decimals=1)),
    NameGuess("height", Number.sketch(low=0, high=250), "In centimetres."),
    NameGuess("weight", Number.sketch(low=0, high=300), "In kilograms; 600 for pounds."),
    NameGuess("systolic sbp", Number.sketch(low=40, high=300, decimals=0)),
    NameGuess("diastolic dbp", Number.sketch(low=20, high=200, decimals=0)),
    NameGuess("pulse heartrate bpm", Number.sketch(low=0, high=300, decimals=0)),
    NameGuess(
        "income salary wage pay",
        Number.sketch(low=0, high=1_000_000, breaks=[1_000, 10_000, 100_000]),
        "A year, in dollars or euros; high = 100_000 for a month.",
    ),
    NameGuess(
        "price cost amount fee fare balance distance duration", Number.sketch(low=0, high=TO_FILL_IN), "In which unit?"
    ),
    NameGuess(
        "creatinine glucose cholesterol hemoglobin haemoglobin temperature",
        Number.sketch(low=TO_FILL_IN, high=TO_FILL_IN),
        "In which unit?",
    ),
    NameGuess("birthday birthdate birth dob", Date.sketch(**_dates(1900, 2029))),
    NameGuess("date", Date.sketch(**_dates(1900, 2099)), "Fewer years give finer cells."),
    NameGuess(
        "datetime timestamp",
        Datetime.sketch(low=datetime(1970, 1, 1), high=datetime(2099, 12, 31, 23, 59), resolution="1min"),
        "Fewer years give finer cells.",
    ),
    NameGuess("sex gender", Category.sketch(values=["F", "M"]), "As the table writes them: female and male? 1 and 2?"),
    NameGuess(
        "zip zipcode postcode postal plz", Category.sketch(values=TO_FILL_IN), "A code of few people tells of them."
    ),
    NameGuess(
        "country state province region county district city town race ethnicity nationality language religion marital "
        "education occupation job diagnosis icd cause status type kind category class group grp grade stage level code "
        "team club league school hospital ward department brand carrier",
        Category.sketch(values=TO_FILL_IN),
    ),
    NameGuess("flag smoker pregnant deceased died dead death alive employed", Boolean.sketch()),
    NameGuess(
        "id uuid guid ssn mrn name surname firstname lastname email mail phone telephone address street url ip iban "
        "passport comment comments note notes text description remarks unnamed rownames",
        Drop.sketch(),
        "Identifiers, names and free text.",
    ),
)
"""The whole list; docs/schema.md shows it."""
UNIT_GUESSES = (
    NameGuess("years", Number.sketch(low=0, high=120)),
    NameGuess("days hours minutes seconds km miles eur usd gbp chf", Number.sketch(low=0, high=TO_FILL_IN)),
    NameGuess("cm", Number.sketch(low=0, high=250)),
    NameGuess("kg", Number.sketch(low=0, high=300)),
)
"""Words that decide only where no other does."""

ROW_NAMES = NameGuess("", Drop.sketch(), "A column without a name mostly has the numbers of the rows.")


def name_words(name: str) -> list[str]:
    """Return the words of a name, in lower case.

    Examples:
        >>> name_words("patientAge_at-visit2"), name_words("DOB")
        (['patient', 'age', 'at', 'visit'], ['dob'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+", name)]


def guess_by_name(name: str, storage: "pa.DataType | None" = None) -> Sketch | None:
    """Return what a name proposes, if a column of that storage type (None: text) can be so; else None.

    Examples:
        >>> guess_by_name("age_at_visit")
        ({'type': 'integer', 'low': 0, 'high': 120, 'unit': 'year'}, 'Guessed from the name alone: check it.')
        >>> guess_by_name("age_group")[0], guess_by_name("x17")
        ({'type': 'category', 'values': '?'}, None)
    """
    found = ROW_NAMES if not name.strip() else _proposed(name_words(name))
    if found is None or not _can_be(found.fields, storage):
        return None
    return dict(found.fields), f"{CHECK_IT} {found.remark}".rstrip()


def places_by_name(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the places that two names make: the same but for a word for latitude and one for longitude.

    Examples:
        >>> places_by_name(["pickup_lat", "pickup_lon", "fare"])
        {'pickup place': {'type': 'place', 'latitude': 'pickup_lat', 'longitude': 'pickup_lon'}}
    """
    north, east = (_by_rest(names, words) for words in (LATITUDES, LONGITUDES))
    places = {}
    for rest in (rest for rest in north if rest in east):
        named = " ".join([*rest, "place"])
        if len(north[rest]) == len(east[rest]) == 1 and named not in names:
            places[named] = Place.sketch(latitude=north[rest][0], longitude=east[rest][0])
    return places


def _by_rest(names: Iterable[str], axis: Sequence[str]) -> dict[tuple[str, ...], list[str]]:
    """Return the names that have a word of an axis, by their other words."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        words = name_words(name)
        if sum(word in axis for word in words) == 1:
            found.setdefault(tuple(word for word in words if word not in axis), []).append(name)
    return found


def _proposed(words: list[str]) -> NameGuess | None:
    if len(words) > 1 and words[-1] == "at":  # created_at
        return next(guess for guess in NAME_GUESSES if "timestamp" in guess.words)
    link = next((i for i, word in enumerate(words) if i and word in LINKS), len(words))
    for guesses in (NAME_GUESSES, UNIT_GUESSES):
        known = {word: guess for guess in guesses for word in guess.words.split()}
        decides = next((word for word in reversed(words[:link]) if word in known), None)
        if decides is not None:
            return known[decides]
    if len(words) > 1 and words[0] in QUESTIONS:
        return NameGuess("", Boolean.sketch())
    return None


def _can_be(fields: Mapping[str, Any], storage: "pa.DataType | None") -> bool:
    """Say whether a column of a storage type can be declared so; gaps are filled for the question."""
    if storage is None:
        return True
    try:
        column = from_fields({name: STAND_INS[name] if v == TO_FILL_IN else v for name, v in fields.items()})
    except ColumnError:
        return False
    return column.refuses(plain_type(storage)) is None


def name_lines() -> list[str]:
    """Return a line about each entry of the list: its words, and what they propose."""
    return [
        f"{guess.words}: {', '.join([str(guess.fields['type']), *_told(guess.fields)])}"
        for guess in (*NAME_GUESSES, *UNIT_GUESSES)
    ]


def _told(fields: Mapping[str, Any]) -> list[str]:
    from privmeasure.tables.toml import value_text

    return [f"{name} = {value_text(value)}" for name, value in fields.items() if name != "type"]
