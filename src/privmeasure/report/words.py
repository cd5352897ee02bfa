"""The words of pages: what is promised to a person, what is lost, what a picture shows. Public values alone."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from privmeasure.domains import Points
from privmeasure.plans.columns import ColumnPlan
from privmeasure.plans.promise import Promise
from privmeasure.privacy import Privacy
from privmeasure.releases.bands import Band, TypicalError
from privmeasure.report.canvas import short
from privmeasure.report.promises import ColumnPromise, beliefs
from privmeasure.tables.variables import Variable


def promise_words(privacy: Privacy, *, released: bool = True) -> list[str]:
    """Say in plain words what is promised to a person, by a release or before there is one."""
    epsilon, factor = float(privacy.epsilon), math.exp(min(float(privacy.epsilon), 700.0))
    if privacy.person is not None:
        whose = f"all rows of one {privacy.person!r}, of which at most {privacy.rows_per_person} were kept"
    elif privacy.rows_per_person > 1:
        whose = f"all rows of one person, up to {privacy.rows_per_person}, which whoever made the release vouches for"
    else:
        whose = "one row: everybody has one, which whoever made the release vouches for"
    change = (
        "Had they not been in the table, or had somebody joined it,"
        if privacy.neighbours == "add-remove"
        else "Had they said anything else,"
    )
    size = (
        "The number of rows is protected as well: "
        + ("the one on this page has noise on it." if released else "it gets noise.")
        if privacy.neighbours == "add-remove"
        else "The number of rows is public, and exact."
    )
    return [
        f"The promise is made to every person: {whose}. {change} {'this very' if released else 'any'} release "
        "would have been nearly as likely: at "
        f"most {factor:.3g} times as likely, or as unlikely, as it was. That factor is e to the power of epsilon, and "
        f"epsilon is {epsilon:g}. It holds for every outcome and against everybody, whatever they know, have or "
        "will get "
        f"(delta is 0). {size}",
        "So nobody learns much about a person from it. The picture shows how much at the most, for somebody who "
        "knows the "
        "rows of everybody else: how sure they may be, afterwards, of something about that person.",
    ]


def belief_rows(privacy: Privacy) -> list[list[str]]:
    """Return beliefs before and after a release."""
    rows = []
    for before in (0.01, 0.1, 0.5, 0.9):
        low, high = beliefs(privacy, np.array([before]))
        rows.append([f"{100 * before:g} %", f"{100 * float(low[0]):.2g} %", f"{100 * float(high[0]):.3g} %"])
    return rows


def not_promised(privacy: Privacy) -> list[str]:
    """Say what a reader might expect, and is not so."""
    several = float(2 * privacy.epsilon)
    return [
        "That nothing can be learned about people in general. If the table shows that one thing goes with "
        "another, that "
        "may be concluded of a person too, whether or not they are in it.",
        f"That two releases cost as little as one: their epsilons add up. A second one like this makes {several:g}.",
        "That groups are hidden as well as persons: for two people together the factor is squared, and so on.",
    ]


def what_is_lost(release: Any, columns: Sequence[ColumnPromise], typical: TypicalError | None) -> list[str]:
    """Say what a release does not tell, in the order in which people ask."""
    plan = release.plan
    useful = [c for c in columns if 0 < c.best < 1]
    texts = []
    if useful:
        worst, best = max(useful, key=lambda c: c.best), min(useful, key=lambda c: c.best)
        said = [f"{one.name!r}: {one.words(one.best)}" for one in dict.fromkeys([best, worst])]
        ends = "from the best column to the worst" if worst is not best else "at the most"
        texts.append(f"Values are moved a little, on average over the rows, {ends}: {'; '.join(said)}.")
        if typical is not None:
            middle = sorted(spread.typical for spread in typical.columns.values())[len(typical.columns) // 2]
            texts.append(f"Typically far less: about {100 * middle:.2g} % of a column's range, by estimate.")
    blind = [c.name for c in columns if c.best >= 1]
    if blind:
        shown = ", ".join(repr(short(name, 30)) for name in blind[:5])
        more = f" and {len(blind) - 5} more" if len(blind) > 5 else ""
        texts.append(f"Nothing is guaranteed of {shown}{more}: too few rows, or too little epsilon.")
    noise = rows_of_noise(plan)
    texts.append(f"Small groups: a count of rows has noise of about ± {noise:,}. What rests on fewer rows is lost.")
    if not plan.joint:
        texts.append(
            "Patterns of three columns and more, and of pairs that were not measured, are not promised at all."
        )
    return texts


def rows_of_noise(plan: Promise) -> int:
    """Return the standard deviation of the noise on the finest counts of a plan, in rows; of the middle column."""
    scales = sorted(float(tree.scales[-1]) for tree in plan.trees if tree.scales)
    if isinstance(plan, ColumnPlan) and plan.tree_pairs:
        scales = [max([float(plan.tree_scale), *scales[len(scales) // 2 : len(scales) // 2 + 1]])]
    scale = scales[len(scales) // 2] if scales else 0.0
    return max(1, round(math.sqrt(2) * scale)) if scale else 0


def describe_shares(v: Variable, shares: Any, own: Points) -> str:
    """Say in words what a picture of a distribution shows."""
    missing = f"; missing {100 * shares[-1]:.2g} %" if v.nullable else ""
    if v.scale == "values":
        order = np.argsort(-shares[: len(v.labels)], kind="stable")[:4]
        most = ", ".join(f"{short(v.labels[i], 40)} {100 * shares[i]:.2g} %" for i in order)
        return f"Bars of {v.name}; the most frequent: {most}{missing}."
    if v.scale == "place":
        best = np.unravel_index(int(np.argmax(shares[: math.prod(v.shape)])), v.shape)
        lon, lat = (float((e[i] + e[i + 1]) / 2) for e, i in zip(v.edges, best, strict=True))
        return f"Map of {v.name}; most rows near latitude {lat:.4g}, longitude {lon:.4g}{missing}."
    present = own[~np.isnan(own[:, 0]), 0]
    if not len(present):
        return f"{v.name}: all values are missing."
    low, middle, high = (v.show(float(x)) for x in np.quantile(present, (0.05, 0.5, 0.95)))
    return f"Distribution of {v.name}; the median is {middle}, nine in ten lie from {low} to {high}{missing}."


def plus_minus(band: Band) -> str:
    """Say a band with as many digits as its error has.

    Examples:
        >>> plus_minus(Band(36350.2, 2512.0)), plus_minus(Band(38.6712, 0.1312)), plus_minus(Band(1.0, 0.0))
        ('36,400 ± 2,500', '38.67 ± 0.13', '1 ± 0')
    """
    if not band.error > 0 or not math.isfinite(band.error):
        return f"{band.value:.4g} ± {band.error:.2g}"
    digits = 1 - math.floor(math.log10(band.error))
    return " ± ".join(f"{round(x, digits):,.{max(0, digits)}f}" for x in (band.value, band.error))


def exact(value: Fraction) -> str:
    """Say a fraction, exactly where that is short."""
    return str(value) if len(str(value)) <= 8 else f"{float(value):.6g}"


GLOSSARY = [
    ("epsilon", "How much one person may change the chances of what is released: by a factor of e^epsilon at most."),
    ("add-remove", "The promise is about a person's rows being there or not; the number of rows is private."),
    ("replace", "The promise is about what a person's rows say; the number of rows is public."),
    ("W1 distance", "How far values have to be moved, on average over the rows, to turn one table into the other."),
    ("guarantee", "A bound of the expected distance, from public values, known before the data were opened."),
    (
        "certificate",
        "A bound of the distance of this release, from its noisy counts, which holds with high probability.",
    ),
    ("typical error", "An estimate by running the mechanism again on released rows. Not a bound."),
    ("bits", "How much one column tells of another, by the released table of the pair: 0 for nothing."),
]
