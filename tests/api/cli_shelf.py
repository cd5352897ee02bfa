"""What the tests of the command line work on: a table with secrets, its schema, commands."""

import re
import sys

import numpy as np
import pyarrow as pa

SECRET = "Secret73819"
ROWS = 937  # 900 is a part of 2**53 - 1, which messages may show
RANDOM_NAME = re.compile(r"[0-9a-f]{32}")
"""A name that is drawn for a file, in which any digits may stand."""
SCHEMA = """
format = 1
[columns.age]
type = "integer"
low = 17
high = 90
unit = "year"
nullable = true
[columns.sex]
type = "category"
values = ["F", "M"]
nullable = false
[columns.income]
type = "number"
low = 0
high = 100000
decimals = 0
nullable = false
[columns.name]
type = "drop"
"""
FRICTIONLESS = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 17, "maximum": 90}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
    ]
}
DICTIONARY = "name,type,low,high,values\nage,integer,17,90,\nsex,category,,,F;M\nincome,number,0,100000,\nname,id,,,\n"
PROMISE = ["--epsilon", "1", "--neighbours", "add-remove"]
FIT = ["fit", "people.csv", "--schema", "people.toml", *PROMISE, "-o", "new.release"]
BOOKED = [*FIT, "--ledger", "book.sqlite", "--dataset", "people"]
COMMAND = [sys.executable, "-c", "from privmeasure.cli import main; main()"]


def table():
    rng = np.random.default_rng(0)
    age = rng.integers(17, 91, ROWS)
    return pa.table(
        {
            "age": pa.array(age, mask=rng.random(ROWS) < 0.1),
            "sex": np.where(rng.random(ROWS) < 0.5, "F", "M"),
            "income": np.round(age * 500 + rng.random(ROWS) * 9000),
            "name": [f"{SECRET}{i}" for i in range(ROWS)],
        }
    )


def check_message(message, *words):
    assert "Traceback" not in message
    assert SECRET not in message
    assert str(ROWS) not in RANDOM_NAME.sub("", message)
    assert "\n\n" not in message
    assert len(message) < 1200
    for word in words:
        assert word.lower() in message.lower(), message
