"""What each mechanism guarantees at the same public values, so that a plan can say which guarantees most.

Both mechanisms are taken at their defaults: the level or depth that they would choose, the whole budget. Closed forms
alone, a few milliseconds; neither mechanism is made, and nothing is drawn.
"""

from fractions import Fraction

from privmeasure.domains import Box, Domain
from privmeasure.estimates.projection import most_cells
from privmeasure.plans.bounds import flat, t2, t7
from privmeasure.plans.plan import Bound
from privmeasure.plans.recipe import PlacementName
from privmeasure.plans.schedule import (
    DEEPEST_DEPTH,
    PATIENCE,
    ROOT_SHARE,
    depth_guarantees,
    flat_level,
    ladder_anchor,
    ladder_depth,
    sparse_depth,
    tree_scales,
    useful_depth,
)
from privmeasure.privacy import Privacy


def flat_budgets(privacy: Privacy, level: int, *, root_first: bool) -> dict[int, Fraction]:
    """Return the budgets of the flat mechanism: one level, and the number of rows if it is bought first.

    Under "replace" the number of rows is public, and a single cell need not be measured.
    """
    epsilon = privacy.budget
    if privacy.rows_are_public:
        return {level: epsilon} if level else {}
    if not root_first:
        return {level: epsilon}
    root = epsilon * ROOT_SHARE
    return {0: root, level: epsilon - root} if level else {0: root}


def flat_distance(domain: Domain, level: int, placement: PlacementName) -> float:
    """Return how far the data are from the centres of a level's cells, and placed points from theirs, at most."""
    return domain.radius(level) * (1 if placement == "centre" else 2)


def flat_bound(domain: Domain, privacy: Privacy, rows: int, placement: PlacementName, *, root_first: bool) -> Bound:
    """Return what PSMM would guarantee, as a bound beside those of another mechanism."""
    level = flat_level(domain, privacy, rows, most_cells(domain))
    scales = {j: privacy.scale(b) for j, b in flat_budgets(privacy, level, root_first=root_first).items()}
    rho = flat_distance(domain, level, placement)
    value = flat(domain, scales, level, rows, rho, exact_total=privacy.rows_are_public, law=privacy.law)
    return Bound("PSMM", value, False, f"of mechanism='psmm' at its level {level}, for comparison", "psmm")


def tree_bound(domain: Domain, privacy: Privacy, rows: int, placement: PlacementName, *, root_first: bool) -> Bound:
    """Return what PMM would guarantee by its default recipe, as a bound beside those of another mechanism."""
    limit = min(DEEPEST_DEPTH, domain.deepest)
    if type(domain) is Box:
        depth, anchor = ladder_depth(domain, privacy, rows, limit), ladder_anchor(domain, privacy, rows, limit)
        scales = tree_scales("ladder", domain, privacy, depth, lazy=False, root_first=root_first, anchor=anchor)
        name, value = "T7", t7(domain, scales, anchor, rows, law=privacy.law).guarantee
    else:
        depth = useful_depth(domain, sparse_depth(domain, privacy, rows, limit))
        scales = tree_scales("sparse", domain, privacy, depth, lazy=False, root_first=root_first)
        rho = domain.radius(depth) if placement == "centre" else domain.diameter(depth)
        least = min(depth_guarantees("sparse", domain, privacy, rows, limit))
        name, value = "T2", max(t2(domain, scales, depth, rows, rho, blue=True, law=privacy.law), PATIENCE * least)
    return Bound(name, value, False, f"of mechanism='pmm' at its depth {depth}, for comparison", "pmm")
