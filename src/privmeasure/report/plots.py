"""Pictures of releases, plans and values, for notebooks and pages. Each function draws on axes and returns them.

Without `ax` they make axes of their own; ``ax.figure`` is the figure, which a notebook shows. What takes a release or a
plan shows public values alone; what takes rows shows whatever they are. They need matplotlib, the extra `[report]`.

    >>> import numpy as np, privmeasure as pm
    >>> from privmeasure.report import plots
    >>> synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace").fit(np.random.random(1000))
    >>> plots.column(synth.release_, "x0").get_xlabel()
    'x0'
    >>> plots.odds(synth.privacy).get_ylabel()
    'after it (%)'
"""

from privmeasure.report.distributions import agreement, column, distribution
from privmeasure.report.heat import calendar, heat_map, pair, place_map
from privmeasure.report.promises import budget, distance_in_units, errors, guarantees, odds

__all__ = [
    "agreement",
    "budget",
    "calendar",
    "column",
    "distance_in_units",
    "distribution",
    "errors",
    "guarantees",
    "heat_map",
    "odds",
    "pair",
    "place_map",
]
