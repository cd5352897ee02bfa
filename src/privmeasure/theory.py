"""What a reader of the paper looks for: distances, complexities and their bounds. Public values only.

Every name lives in its own room; docs/researchers.md shows them at work.
"""

from privmeasure.plans.complexity import entropy_bound, laplacian_complexity, lower_bound
from privmeasure.transport import Grid, Line, bounded_lipschitz, closest_measure

__all__ = [
    "Grid",
    "Line",
    "bounded_lipschitz",
    "closest_measure",
    "entropy_bound",
    "laplacian_complexity",
    "lower_bound",
]
