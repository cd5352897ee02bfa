"""The main job, end to end: sensitive points in, points that anyone may see out; then the same for a table.

Reads examples/city.csv (simulated, see make_city.py), says what will be guaranteed before it looks, spends epsilon = 1,
and writes out/demo/: the release, synthetic points, and a picture. Then makes a synthetic table of examples/flights.
"""

from pathlib import Path

import numpy as np

import privmeasure as pm

HERE = Path(__file__).parent
OUT = HERE.parent / "out" / "demo"


def main() -> None:
    city()
    flights()


def city() -> None:
    # Public: where the city lies, and what is promised.
    square = pm.Box([(0, 10), (0, 10)])
    synth = pm.Synthesizer(square, epsilon=1, neighbours="add-remove")
    print("Before any row is read, for 30,000 rows (a guess):\n")
    print(synth.plan(rows=30_000), "\n")

    # Private: read, count, add noise. Epsilon is spent here, once.
    points = np.loadtxt(HERE / "city.csv", delimiter=",", skiprows=1)
    synth.fit(points)

    # Public again: anyone may have the release, and draw from it for ever.
    OUT.mkdir(parents=True, exist_ok=True)
    synth.save(OUT / "city.release.parquet")
    release = pm.load(OUT / "city.release.parquet")
    synthetic = release.sample()
    header = ",".join(["east_km", "north_km"])
    np.savetxt(OUT / "city.synthetic.csv", synthetic, fmt="%.3f", delimiter=",", header=header, comments="")
    print("After the release, at its own noisy number of rows:\n")
    print(release.plan, "\n")
    print(f"In words: on average a point need move at most {10 * release.plan.guarantee:.2f} km of the city's 10 km")
    print("to turn the synthetic points into the sensitive ones, whatever those are. Usually it is far less.\n")
    print(f"mean of the release: {release.mean()[0]:.2f} km east, {release.mean()[1]:.2f} km north")
    draw(points, synthetic, float(release.plan.privacy.epsilon))
    for name in ("city.release.parquet", "city.synthetic.csv", "city.png"):
        print(f"wrote out/demo/{name}")


def flights() -> None:
    from pyarrow import csv

    schema = pm.Schema.from_toml(HERE / "flights" / "flights.toml")
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove")
    print("\nA table of 6 columns, before any row is read, for 300,000 rows (a guess):\n")
    print(
        "\n".join(line for line in str(synth.plan(rows=300_000)).splitlines() if line.startswith(("columns", "guar")))
    )
    synthetic = synth.fit(HERE / "flights" / "flights.parquet").sample()
    csv.write_csv(synthetic, OUT / "flights.synthetic.csv")
    print(f"\nwrote out/demo/flights.synthetic.csv ({synthetic.num_rows:,} rows)")


def draw(points: np.ndarray, synthetic: np.ndarray, epsilon: float) -> None:
    """Draw both side by side. The left picture shows the sensitive data: fine here, since they are simulated."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 6), sharex=True, sharey=True)
    titles = ("sensitive points (simulated)", f"synthetic points, epsilon = {epsilon:g}, delta = 0")
    for axis, data, title, colour in zip(axes, (points, synthetic), titles, ("#444444", "#0b6e99"), strict=True):
        axis.plot(*data.T, ",", color=colour, alpha=0.8)
        axis.set(title=title, xlabel="east, km", xlim=(0, 10), ylim=(0, 10), aspect="equal")
    axes[0].set_ylabel("north, km")
    figure.savefig(OUT / "city.png", dpi=140, bbox_inches="tight")


if __name__ == "__main__":
    main()
