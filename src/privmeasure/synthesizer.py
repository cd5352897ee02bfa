"""The facade: plan, fit, sample, save."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from privmeasure.counts import Progress
from privmeasure.domains import Box, Domain, Points
from privmeasure.engines.memory import ArraySource
from privmeasure.errors import ArgumentError, DataError, SpentError
from privmeasure.inverse import EPSILONS, ROWS, smallest
from privmeasure.mechanisms import PMM, PSMM, Recipe
from privmeasure.mechanisms.recipe import DEFAULT
from privmeasure.noise.entropy import Key
from privmeasure.plan import Plan
from privmeasure.privacy import Neighbours, Privacy
from privmeasure.release import CellMeasure, Order

CENTRED = Recipe(placement="centre")


class Synthesizer:
    """Turns private points of a domain into a public release. One object, one release: each fit spends epsilon.

    Examples:
        >>> import numpy as np, privmeasure as pm
        >>> X = np.random.default_rng(0).normal(0.5, 0.1, (5000, 2))
        >>> synth = pm.Synthesizer(pm.Box([(0, 1), (0, 1)]), epsilon=1.0, neighbours="replace")
        >>> bound = synth.plan(rows=5000).guarantee       # before a single record is read
        >>> Y = synth.fit(X).sample()
        >>> Y.shape
        (5000, 2)
    """

    def __init__(
        self,
        domain: Domain,
        *,
        epsilon: Any,
        neighbours: Neighbours,
        rows: int | None = None,
        rows_per_person: int = 1,
        mechanism: Literal["pmm", "psmm"] = "pmm",
        recipe: Recipe = DEFAULT,
        depth: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Declare what is public and what is promised; checks everything before data are touched."""
        if not isinstance(domain, Domain):
            raise ArgumentError(
                f"domain must be a Domain such as Box([(0, 1), (0, 1)]), got {type(domain).__name__}. "
                "It says where points may lie, and is public."
            )
        if mechanism not in ("pmm", "psmm"):
            raise ArgumentError(f"mechanism must be 'pmm' (a tree) or 'psmm' (a flat histogram), got {mechanism!r}.")
        if mechanism == "psmm" and recipe not in (DEFAULT, CENTRED):
            raise ArgumentError("recipe is for mechanism='pmm'; with 'psmm' only its placement can be chosen.")
        self.domain = domain
        self.privacy = Privacy(epsilon, neighbours, rows_per_person)
        self.mechanism: PMM | PSMM = (
            PMM(domain, self.privacy, recipe, depth=depth, rows=rows, threads=threads)
            if mechanism == "pmm"
            else PSMM(domain, self.privacy, depth=depth, rows=rows, placement=recipe.placement, threads=threads)
        )
        self._threads = threads
        self._release: CellMeasure | None = None
        self._started = False

    def plan(self, rows: int | None = None) -> Plan:
        """Say what would be measured and guaranteed for a number of rows, from public values; changes nothing."""
        return self.mechanism.plan(rows)

    def guarantees(self, rows: int, epsilons: Iterable[Any] = (0.1, 0.2, 0.5, 1, 2, 5, 10)) -> list[Plan]:
        """Return the plans for several epsilons: a table of guarantee against epsilon, from public values.

        A guarantee may rise a little with epsilon where the default depth jumps: the deeper tree serves data in few
        places far better. A `depth` that is given does away with the jumps.
        """
        return [self._at(epsilon).plan(rows) for epsilon in epsilons]

    def epsilon_for(self, *, w1: float, rows: int) -> float:
        """Return the smallest epsilon, to two digits, that guarantees an expected W1 distance for a number of rows.

        Examples:
            >>> import privmeasure as pm
            >>> synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace")
            >>> synth.epsilon_for(w1=0.01, rows=50_000)
            0.19
        """
        return float(smallest(EPSILONS, lambda epsilon: self._at(epsilon).plan(rows).guarantee, w1, "epsilon"))

    def rows_for(self, *, w1: float, epsilon: Any = None) -> int:
        """Return the fewest rows, to two digits, for which an expected W1 distance is guaranteed at an epsilon."""
        mechanism = self.mechanism if epsilon is None else self._at(epsilon)
        mechanism = replace(mechanism, rows=None)
        found: int = smallest(ROWS, lambda rows: mechanism.plan(rows).guarantee, w1, "rows")
        return found

    def _at(self, epsilon: Any) -> PMM | PSMM:
        return replace(self.mechanism, privacy=Privacy(epsilon, self.privacy.neighbours, self.privacy.rows_per_person))

    def fit(self, data: Any, *, progress: Progress | None = None, insecure_seed: int | None = None) -> "Synthesizer":
        """Spend epsilon on the data, once. `insecure_seed` is for tests: the release is then marked not private."""
        if self._started:
            state = "was fitted already" if self._release else "began a fit that did not finish"
            raise SpentError(
                f"This synthesizer {state}, and another fit would spend epsilon again. "
                "Make a new Synthesizer if you mean to; the two together then cost twice epsilon."
            )
        source = ArraySource(data, width=self.domain.width, threads=self._threads)
        key = Key.fresh() if insecure_seed is None else Key.insecure(insecure_seed)
        self._started = True
        try:
            self._release = self.mechanism.release(source, key, progress)
        except DataError:  # raised before any noise was drawn: nothing was spent
            self._started = False
            raise
        return self

    @property
    def release_(self) -> CellMeasure:
        """The release, after `fit`."""
        if self._release is None and self._started:
            raise SpentError("The fit did not finish: there is no release, but epsilon counts as spent. Start anew.")
        if self._release is None:
            raise SpentError("There is no release yet: call fit(data) first.")
        return self._release

    @property
    def plan_(self) -> Plan:
        """The plan as it was carried out, restated at the released number of rows."""
        return self.release_.plan

    def sample(self, n: int | None = None, *, seed: int | None = None, order: Order = "random") -> Points:
        """Return synthetic rows; see `CellMeasure.sample`."""
        return self.release_.sample(n, seed=seed, order=order, threads=self._threads)

    def save(self, path: str | Path) -> None:
        """Write the release to one file, which `privmeasure.load` reads."""
        self.release_.save(path)


def synthesize(
    X: Any,  # noqa: N803 - the name that everyone gives to a data matrix
    *,
    epsilon: Any,
    neighbours: Neighbours,
    bounds: Iterable[tuple[float, float]],
    rows: int | None = None,
    rows_per_person: int = 1,
    threads: int | None = None,
    insecure_seed: int | None = None,
) -> Points:
    """Return synthetic points in the place of private ones: arrays in, arrays out.

    `bounds` are public, one (low, high) a column; values beyond them are clamped. `rows` is a public number of rows to
    plan for, if there is one. A one-dimensional X gives a one-dimensional result, and so do lists of one column; in
    lists, what is not a number counts as missing.

    Examples:
        >>> import numpy as np, privmeasure as pm
        >>> ages = np.random.default_rng(0).gamma(9, 5, 10_000)
        >>> synthetic = pm.synthesize(ages, epsilon=1, neighbours="replace", bounds=[(0, 120)])
        >>> synthetic.shape, bool(abs(np.median(synthetic) - np.median(ages)) < 2)
        ((10000,), True)
    """
    synthesizer = Synthesizer(
        Box(bounds),
        epsilon=epsilon,
        neighbours=neighbours,
        rows=rows,
        rows_per_person=rows_per_person,
        threads=threads,
    )
    points = synthesizer.fit(X, insecure_seed=insecure_seed).sample(seed=insecure_seed)
    flat = points.shape[1] == 1 and getattr(X, "ndim", 1) == 1  # lists of one column too: [] and [[x]] look the same
    return points[:, 0] if flat else points
