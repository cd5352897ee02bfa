"""Moving mass at the least cost: flows, the line and trees in closed form, bounded-Lipschitz distances."""

from privmeasure.transport.bounded_lipschitz import bounded_lipschitz, closest_measure
from privmeasure.transport.flow import Grid, grid_arcs, min_cost_flow
from privmeasure.transport.line import (
    Line,
    apportion,
    cell_wasserstein,
    circle_wasserstein,
    hierarchy_wasserstein,
    line_wasserstein,
    tree_wasserstein,
)

__all__ = [
    "Grid",
    "Line",
    "apportion",
    "bounded_lipschitz",
    "cell_wasserstein",
    "circle_wasserstein",
    "closest_measure",
    "grid_arcs",
    "hierarchy_wasserstein",
    "line_wasserstein",
    "min_cost_flow",
    "tree_wasserstein",
]
