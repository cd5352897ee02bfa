"""What names propose: kinds and round bounds, from the name and the storage type alone."""

import pyarrow as pa
import pytest

from privmeasure.tables import Schema
from privmeasure.tables.columns.base import TO_FILL_IN
from privmeasure.tables.columns.kinds import from_fields
from privmeasure.tables.guessing import NAME_GUESSES, STAND_INS, UNIT_GUESSES, guess_by_name, places_by_name
from privmeasure.tables.template import draft, template

GUESSED = {
    "age": "integer",
    "PatientAge": "integer",
    "age_at_diagnosis": "integer",
    "age_group": "category",
    "year_of_birth": "integer",
    "date_of_birth": "date",
    "DOB": "date",
    "sex": "category",
    "home_zip": "category",
    "latitude": "number",
    "weight_kg": "number",
    "patient_id": "drop",
    "email": "drop",
    "is_smoker": "boolean",
    "has_children": "integer",
    "was_seen": "boolean",
    "created_at": "datetime",
    "follow_up_days": "number",
    "income_eur": "number",
    "HomeTeam": "category",
    "AwayGoals": "integer",
    "flc.grp": "category",
    "death": "boolean",
    "date_of_death": "date",
    "creatinine": "number",
    "": "drop",
    "Unnamed: 0": "drop",
}


@pytest.mark.parametrize(("name", "kind"), GUESSED.items())
def test_the_last_word_that_is_known_decides(name, kind):
    fields, remark = guess_by_name(name)
    assert fields["type"] == kind
    assert remark.startswith("Guessed from the name alone: check it.")


@pytest.mark.parametrize("name", ["x1", "image", "average", "V17", "_", "at", "statement", "of_age"])
def test_other_names_propose_nothing_that_is_not_in_them(name):
    found = guess_by_name(name)
    assert found is None or name == "of_age"


def test_every_entry_is_a_column_once_its_gaps_are_filled():
    seen = set()
    for guess in (*NAME_GUESSES, *UNIT_GUESSES):
        from_fields({field: STAND_INS[field] if v == TO_FILL_IN else v for field, v in guess.fields.items()})
        assert not seen & set(guess.words.split())
        seen |= set(guess.words.split())


def test_a_storage_type_that_contradicts_comes_first():
    assert guess_by_name("sex", pa.int8()) is None
    assert guess_by_name("date", pa.float64()) is None
    assert guess_by_name("age", pa.string()) is None
    assert guess_by_name("age", pa.int8())[0]["high"] == 120
    assert guess_by_name("price", pa.decimal128(9, 2))[0] == {"type": "number", "low": 0, "high": TO_FILL_IN}
    assert draft(["sex"], [pa.int8()], guess=True).columns == {"sex": {"type": "integer", "low": "?", "high": "?"}}


def test_a_latitude_and_its_longitude_are_one_place():
    names = ["lat", "lon", "pickup_lat", "pickup_lng", "drop_latitude", "x_long"]
    assert set(places_by_name(names)) == {"place", "pickup place"}
    columns = draft(["id", *names], guess=True).columns
    assert list(columns) == ["id", "place", "pickup place", "drop_latitude", "x_long"]
    assert columns["place"] == {"type": "place", "latitude": "lat", "longitude": "lon"}
    assert places_by_name(["lat", "latitude", "lon"]) == {}
    assert places_by_name(["lat", "lon", "place"]) == {}


def test_a_guessed_template_may_be_complete():
    names = ["id", "age", "sex", "lat", "lon", "smoker", "bmi", "dob"]
    schema = Schema.from_text(template(names, guess=True).replace('nullable = "?"', "nullable = false"))
    schema.check(names, None)
    assert "age" not in template(["age"]).split("format = 1")[1].replace("[columns.age]", "")
