"""The words of pages: what is promised to a person, what is lost, what a picture shows. Public values alone."""

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from privmeasure.domains import Points
from privmeasure.plans.columns import ColumnPlan
from privmeasure.plans.promise import Promise
from privmeasure.privacy import Privacy
from privmeasure.releases.bands import Band, TypicalError
from privmeasure.report.canvas import percent, short
from privmeasure.report.promises import PRESENCE, VALUES, ColumnPromise, beliefs
from privmeasure.tables.advice import standing_alone_advice
from privmeasure.tables.variables import Variable

WEAK_ABOVE = 4
"""The epsilon above which a page says that the promise is weak: who was half sure may be sure to 98 %."""
WEAK = "somebody who was half sure of something may be all but certain afterwards. A smaller epsilon protects better."


STRENGTHS = (
    (0.2, "strong: hardly anything depends on one person"),
    (1.5, "a usual choice for sensitive data"),
    (3.99, "weaker than usual"),
    (9.99, "weak: for tables that are not very sensitive"),
    (math.inf, "says next to nothing about one person"),
)
"""The largest epsilon of each class of promises, and what pages call it; docs/choosing-epsilon.md explains more."""


def strength(privacy: Privacy) -> str:
    """Say how strong a promise is, as people use them.

    Examples:
        >>> [strength(Privacy(epsilon, "replace")).split(":")[0] for epsilon in ("1/10", 1, 4)]
        ['strong', 'a usual choice for sensitive data', 'weak']
    """
    return next(words for most, words in STRENGTHS if privacy.epsilon <= most)


def compared_beliefs(privacy: Privacy) -> list[list[str]]:
    """Return what a belief of 50 % may become by usual epsilons, by this one, and by this one spent twice."""
    named = [(privacy, "this release"), (privacy.at(2 * privacy.epsilon), "this one and a second like it")]
    taken = {own.epsilon for own, _ in named}
    named += [(privacy.at(usual), "") for usual in ("1/10", 1, 4, 10) if Fraction(usual) not in taken]
    rows = []
    for own, name in sorted(named, key=lambda pair: pair[0].epsilon):
        first = f"{float(own.epsilon):g}" + (f" ({name})" if name else "")
        rows.append([first, strength(own), *belief_rows([own], (0.5,))[0][1:]])
    return rows


def promise_words(privacy: Privacy, *, released: bool = True) -> list[str]:
    """Say in plain words what is promised to a person, by a release or before there is one."""
    epsilon, factor = float(privacy.epsilon), math.exp(min(float(privacy.epsilon), 700.0))
    vouched = "whoever publishes this release vouches for that" if released else "you, who publish it, vouch for that"
    if privacy.person is not None:
        whose = f"for all rows of one {privacy.person!r}, of which at most {privacy.rows_per_person} were kept"
    elif privacy.rows_per_person > 1:
        whose = f"for all their rows together, up to {privacy.rows_per_person} (nobody has more: {vouched})"
    else:
        whose = f"for their one row (nobody has more than one row: {vouched})"
    if privacy.neighbours == "add-remove":
        change = "Had that person not been in the table, or had one more joined it,"
        size = "The number of rows is protected as well: "
        size += "the one on this page has noise on it." if released else "it gets noise."
    else:
        change, size = "Had that person's rows said anything else,", "The number of rows is public, and exact."
    which = "this very release" if released else "any release"
    known = beliefs(privacy, 0.5)
    twice = (
        " Somebody who knows already that the person is in the table may learn more of what their rows say: from 50 % "
        f"sure to {show_percent(known[VALUES][1])}, not to {show_percent(known[PRESENCE][1])} only. From one "
        "possibility to another it takes two steps, out of the table and in again."
        if privacy.neighbours == "add-remove"
        else ""
    )
    weak = f" This is a weak promise: {WEAK}" if epsilon > WEAK_ABOVE else ""
    return [
        f"The promise is made to every person, {whose}. {change} {which} could have come out as well: its chance "
        f"would have been at most {factor:.3g} times larger or smaller. That factor is e to the power of epsilon, and "
        f"epsilon is {epsilon:g}. {_how_sure(privacy)} {size}",
        "The picture shows how much anybody can learn of one person at the most, even somebody who knows the rows of "
        f"everybody else: how sure they may be of something about that person, before and after.{twice}{weak}",
    ]


def _how_sure(privacy: Privacy) -> str:
    """Say whether the promise may fail."""
    if not privacy.delta:
        return "It holds for every outcome and against everybody, whatever they know, have or will get (delta is 0)."
    return (
        "It holds against everybody, whatever they know, have or will get, but for delta: the chance of any set of "
        f"outcomes is at most that factor times as large plus {float(privacy.delta):g}. So some rare outcomes may tell "
        "more of the person; what is said below leaves them out."
    )


def belief_rows(privacies: Sequence[Privacy], befores: Sequence[float]) -> list[list[str]]:
    """Return for each promise, or each belief before a release, what the beliefs after it may be."""
    return [
        [
            f"{100 * before:g} %" if len(befores) > 1 else f"{float(privacy.epsilon):g}",
            *(f"{show_percent(low)} to {show_percent(high)}" for low, high in beliefs(privacy, before).values()),
        ]
        for privacy in privacies
        for before in befores
    ]


def belief_heads(privacy: Privacy, first: str) -> list[str]:
    """Return the heads of a table of beliefs."""
    return [first, *beliefs(privacy, 0.5)]


def show_percent(share: float) -> str:
    """Say how sure somebody is; never 100 %, which nobody is.

    Examples:
        >>> show_percent(0.731), show_percent(0.99995), show_percent(0.00001)
        ('73 %', 'above 99.9 %', 'below 0.1 %')
    """
    if share >= 0.9995:
        return "above 99.9 %"
    return "below 0.1 %" if share < 0.001 else f"{100 * share:.3g} %" if share > 0.99 else f"{100 * share:.2g} %"


def not_promised(privacy: Privacy) -> list[str]:
    """Say what a reader might expect, and is not so."""
    several = float(2 * privacy.epsilon)
    return [
        "That nothing can be learned about people in general. If the table shows that one thing goes with another, "
        "that may be concluded of a person too, whether or not they are in it.",
        f"That two releases cost as little as one: their epsilons add up. A second one like this makes {several:g}"
        + (" at the most, and twice the delta." if privacy.delta else "."),
        "That groups are hidden as well as persons: for two people together the factor is squared, and so on"
        + (", and delta grows by more than that." if privacy.delta else "."),
    ]


MOST_SENTENCES = 6
"""Columns that have a sentence each on the first card; of more, the best and the worst have one."""
WHICH_TO_USE = (
    "The proved ones hold for whatever data, so they are wide: use them where somebody must be able to rely on it. "
    "The expected one is what a rehearsal on synthetic rows gave: use it to judge whether the rows are good enough "
    "for you."
)


def what_is_lost(
    release: Any, columns: Sequence[ColumnPromise], sure: float | None, typical: TypicalError | None
) -> list[str]:
    """Say what a release does not tell, in the order in which people ask."""
    plan = release.plan
    useful = [c for c in columns if 0 < c.best < 1]
    texts = []
    if useful:
        ends = [min(useful, key=lambda c: c.best), max(useful, key=lambda c: c.best)]
        named = useful if len(useful) <= MOST_SENTENCES else ends
        texts.append(
            "How far values are moved, on average over the rows"
            + (":" if named is useful else f"; of {len(useful)} columns the nearest and the farthest:")
        )
        texts += [one.sentence(sure) for one in named]
        if typical is not None:
            texts.append(WHICH_TO_USE)
    blind = [c.name for c in columns if c.best >= 1]
    if blind:
        shown = ", ".join(repr(short(name, 30)) for name in blind[:5])
        more = f" and {len(blind) - 5} more" if len(blind) > 5 else ""
        texts.append(f"Nothing is guaranteed of {shown}{more}: too few rows, or too little epsilon.")
    noise = rows_of_noise(plan)
    texts.append(f"Small groups: a count of rows has noise of about ± {noise:,}. What rests on fewer rows is lost.")
    if not plan.joint:
        schema = getattr(release, "schema", None)
        texts += [] if schema is None else standing_alone_advice(schema, plan, release.standing_alone)
        texts.append(
            "Patterns of three columns and more, and of pairs that were not measured, are not promised at all."
        )
    return texts


Quantile = Callable[[float], float]
"""Gives the place of a quantile on the axis of a variable."""


def rows_of_noise(plan: Promise) -> int:
    """Return the standard deviation of the noise on the finest counts of a plan, in rows; of the middle column."""
    scales = sorted(float(tree.scales[-1]) for tree in plan.trees if tree.scales)
    if isinstance(plan, ColumnPlan) and plan.tree_pairs:
        scales = [max([float(plan.tree_scale), *scales[len(scales) // 2 : len(scales) // 2 + 1]])]
    scale = scales[len(scales) // 2] if scales else 0.0
    return max(1, round(math.sqrt(2) * scale)) if scale else 0


def describe_shares(v: Variable, shares: Any, own: Points, stated: Quantile | None = None) -> str:
    """Say in words what a picture of a distribution shows: with the quantiles that a release states, or of the rows."""
    missing = f"; missing {percent(shares[-1])}" if v.nullable else ""
    if v.scale == "values":
        order = np.argsort(-shares[: len(v.labels)], kind="stable")[:4]
        most = ", ".join(f"{short(v.labels[i], 40)} {percent(shares[i])}" for i in order)
        return f"Bars of {v.name}; the most frequent: {most}{missing}."
    if v.scale == "place":
        best = np.unravel_index(int(np.argmax(shares[: math.prod(v.shape)])), v.shape)
        lon, lat = (float((e[i] + e[i + 1]) / 2) for e, i in zip(v.edges, best, strict=True))
        return f"Map of {v.name}; most rows near latitude {lat:.4g}, longitude {lon:.4g}{missing}."
    present = own[~np.isnan(own[:, 0]), 0]
    if not len(present):
        return f"{v.name}: all values are missing."
    places = [np.quantile(present, q) if stated is None else stated(q) for q in (0.05, 0.5, 0.95)]
    low, middle, high = (v.show(float(x)) for x in places)
    return f"Distribution of {v.name}; the median is {middle}, nine in ten lie from {low} to {high}{missing}."


def with_band(band: Band) -> str:
    """Say a value and its band, with as many digits as the width of the band has.

    Examples:
        >>> with_band(Band(36350.2, 33838.0, 38862.0)), with_band(Band(38.6712, 38.54, 38.6712))
        ('36,400 (33,800 to 38,900)', '38.671 (38.540 to 38.671)')
        >>> with_band(Band(1.0, 1.0, 1.0))
        '1 (1 to 1)'
    """
    half = (band.high - band.low) / 2
    if not half > 0 or not math.isfinite(half):
        return str(band)
    digits = 1 - math.floor(math.log10(half))
    value, low, high = (f"{round(x, digits):,.{max(0, digits)}f}" for x in (band.value, band.low, band.high))
    return f"{value} ({low} to {high})"


def exact(value: Fraction) -> str:
    """Say a fraction, exactly where that is short."""
    return str(value) if len(str(value)) <= 8 else f"{float(value):.6g}"


GLOSSARY = [
    ("epsilon", "How much one person may change the chances of what is released: by a factor of e^epsilon at most."),
    (
        "delta",
        "By how much a chance may exceed what epsilon allows: not at all where it is 0. Otherwise outcomes that hardly "
        "ever occur may tell more of a person.",
    ),
    ("pure", "Of a promise: without exception, that is, delta is 0."),
    ("add-remove", "The promise is about a person's rows being there or not; the number of rows is private."),
    ("replace", "The promise is about what a person's rows say; the number of rows is public."),
    ("noise", "Random amounts that were added to counts so that no person can be seen in them."),
    ("noise of scale", "How large it is: about two of three counts are off by no more than the scale."),
    ("W1", "How far values have to be moved, on average over the rows, to turn one table into the other."),
    ("bound", "A limit: something is no larger than that."),
    ("guaranteed", "A bound of the distance on average over the noise, known before the data were opened."),
    ("certified", "A bound of the distance of this release, from its noisy counts, which holds with high probability."),
    ("typical", "An estimate by running the mechanism again on released rows. Not a bound."),
    ("rows from noisy table", "Total variation distance between the default rows and the noisy counts of the pair."),
    ("seldom above", "What nine of ten such runs stayed below."),
    ("cell", "A group of values that lie near each other and were counted together."),
    ("tree", "Cells that are cut into smaller ones again and again, all of them counted."),
    ("level", "How often cells were cut: the higher, the smaller they are."),
    ("told apart", "Values nearer to each other than this were counted as one."),
    ("stretched scale", "A scale with more detail where values are small or many, as it was declared."),
    ("diameter", "How far two rows can be apart at all."),
    ("clamped", "A value beyond the declared bounds was taken as the nearest one within them."),
    ("schema", "The declaration of columns, bounds and lists of values, made before the data were opened."),
    ("bits", "Mutual information of two columns in the released table of the pair: 0 if noise hides a dependence."),
    ("rho", "What epsilon and delta allow to spend, in the unit in which Gaussian noise adds up."),
]
"""Words and what they mean. A page lists those that it has."""


def words_on(page: str) -> list[tuple[str, str]]:
    """Return the words of the glossary that the text of a page has.

    Examples:
        >>> words_on('<style>.cell</style><main title="bits">The schema.</main>')
        [('schema', 'The declaration of columns, bounds and lists of values, made before the data were opened.')]
    """
    text = re.sub(r"<[^>]*>", " ", page[page.index("<main") :])
    return [(word, meaning) for word, meaning in GLOSSARY if re.search(rf"\b{re.escape(word)}", text)]
