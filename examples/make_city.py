"""Makes examples/city.csv: 30,000 simulated trip ends in an imaginary city. No real person or place is in it.

The shape is chosen to be hard in the ways that real maps are: an empty river, thin streets, a dense centre, a few
single addresses that many trips share (a station, a stadium), and thin suburbs. Run it again to get the same file.
"""

from pathlib import Path

import numpy as np

ROWS = 30_000


def simulate(rng: np.random.Generator) -> np.ndarray:
    streets = np.round(rng.random(9) * 20) / 2
    parts = [
        rng.normal((5.0, 4.2), (0.7, 0.6), (9_000, 2)),  # the centre
        rng.normal((7.6, 7.3), (0.35, 0.35), (3_500, 2)),  # a second centre, across the river
        rng.normal((2.2, 7.0), (0.6, 0.3), (2_500, 2)),  # a harbour
        np.column_stack([rng.choice(streets, 4_000), rng.random(4_000) * 10]) + rng.normal(0, 0.02, (4_000, 2)),
        np.column_stack([rng.random(4_000) * 10, rng.choice(streets, 4_000)]) + rng.normal(0, 0.02, (4_000, 2)),
        np.full((1_500, 2), (5.55, 5.05)) + rng.normal(0, 0.01, (1_500, 2)),  # the station
        np.full((900, 2), (8.4, 2.1)) + rng.normal(0, 0.03, (900, 2)),  # the stadium
        rng.random((12_000, 2)) * 10,  # the suburbs
    ]
    points = np.concatenate(parts)
    river = 5.9 + 0.5 * np.sin(points[:, 0] * 0.9) + 0.06 * points[:, 0]
    dry = (np.abs(points[:, 1] - river) > 0.22) & (points >= 0).all(axis=1) & (points <= 10).all(axis=1)
    points = points[dry]
    return points[rng.permutation(len(points))[:ROWS]]


if __name__ == "__main__":
    points = simulate(np.random.default_rng(20231))
    path = Path(__file__).with_name("city.csv")
    np.savetxt(path, points, fmt="%.3f", delimiter=",", header="east_km,north_km", comments="")
    print(f"{path.name}: {len(points)} rows")
