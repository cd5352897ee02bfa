"""Rank cells that nobody tells apart are one cell: drawing takes longer the more there are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privmeasure.model.agreements import Agreements
from privmeasure.model.pairs import Pair
from privmeasure.model.ranks import Groups


def without_unused(
    ranks: Sequence[Groups],
    apart: Sequence[Groups],
    pairs: Sequence[Pair],
    agreements: Agreements | None,
) -> tuple[tuple[Groups, ...], tuple[Pair, ...], Agreements | None]:
    """Return ranks whose cells are those that some table or half tells apart, and tables and halves of these.

    `apart[j]` numbers rank cells of column j: those with different numbers stay different too. A function of what was
    released and of public facts.
    """
    told = [[each, *([] if agreements is None else [agreements.halves[j]])] for j, each in enumerate(apart)]
    for pair in pairs:
        told[pair.first].append(pair.first_groups)
        told[pair.second].append(pair.second_groups)
    places, firsts = zip(*map(_together, told), strict=True)
    return (
        tuple(place[groups] for place, groups in zip(places, ranks, strict=True)),
        tuple(
            replace(
                pair,
                first_groups=pair.first_groups[firsts[pair.first]],
                second_groups=pair.second_groups[firsts[pair.second]],
            )
            for pair in pairs
        ),
        agreements and replace(agreements, halves=tuple(map(np.take, agreements.halves, firsts))),
    )


def _together(told: Sequence[Groups]) -> tuple[Groups, Groups]:
    """Return a new number for each of some cells, the same where all of these say the same, and one cell of each.

    Numbers rise with the first of their cells.

    Examples:
        >>> _together([np.array([0, 0, 0, 1]), np.array([0, 1, 0, 0])])
        (array([0, 1, 0, 2]), array([0, 1, 3]))
    """
    label = np.zeros(len(told[0]), np.int64)
    for each in told:
        label = np.unique(label * (int(each.max()) + 1) + each, return_inverse=True)[1].reshape(-1)
    first = np.sort(np.unique(label, return_index=True)[1])
    place = np.empty(len(first), np.int64)
    place[label[first]] = np.arange(len(first))
    return place[label], first
