"""Tables that keep an order, slow and obvious: what no allowed pair of cells can hold, and the nearest table."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


def without_place(rows: Vector, columns: Vector, allowed: Mask) -> float:
    """Return the mass that no table on the allowed cells can hold: a linear program over all allowed cells."""
    places = np.argwhere(allowed)
    if not len(places):
        return float(rows.sum())
    in_rows = (places[:, 0] == np.arange(len(rows))[:, None]).astype(float)
    in_columns = (places[:, 1] == np.arange(len(columns))[:, None]).astype(float)
    found = linprog(-np.ones(len(places)), A_ub=np.vstack((in_rows, in_columns)), b_ub=np.concatenate((rows, columns)))
    assert found.status == 0
    return float(rows.sum() + found.fun)


def nearest_table(model: Vector, rows: Vector, columns: Vector, allowed: Mask, rounds: int = 5_000) -> Vector:
    """Return the table with these margins on the allowed cells that is nearest to the model (Sinkhorn, cell by cell).

    Nearest in relative entropy: it is x_i * model_ij * y_j on the allowed cells.
    """
    x, y = [1.0] * len(rows), [1.0] * len(columns)
    for _ in range(rounds):
        for i in range(len(rows)):
            total = sum(model[i, j] * y[j] for j in range(len(columns)) if allowed[i, j])
            x[i] = rows[i] / total if total > 0 else 0.0
        worst = 0.0
        for j in range(len(columns)):
            total = sum(x[i] * model[i, j] for i in range(len(rows)) if allowed[i, j])
            worst = max(worst, abs(total * y[j] - columns[j]))
            y[j] = columns[j] / total if total > 0 else 0.0
        if worst < 1e-12 * sum(columns):
            break
    return np.array([[x[i] * model[i, j] * y[j] * allowed[i, j] for j in range(len(y))] for i in range(len(x))])
