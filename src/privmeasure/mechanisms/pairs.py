"""Pairs of columns: their private choice, that of their resolutions, and the noise on the tables that were chosen."""

from collections.abc import Collection, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privmeasure.counts import CellCounts
from privmeasure.domains import Floats
from privmeasure.mechanisms.choice import PART, noisy_max, score, worth
from privmeasure.mechanisms.exponential import exponential_choice
from privmeasure.mechanisms.tree import add_noise
from privmeasure.model.agreements import Agreements, agreement_of, two_halves
from privmeasure.model.graph import Model, RankCells
from privmeasure.model.pairs import Pair
from privmeasure.model.ranks import Blocks, Groups, merge_groups, rank
from privmeasure.noise.draws import law_of
from privmeasure.noise.entropy import Key
from privmeasure.noise.signs import sign_noise
from privmeasure.plans.column_schedule import finer_sides, table_sides
from privmeasure.plans.columns import ColumnPlan
from privmeasure.plans.tuning import Tuning

AGREEMENTS = PART - 1
"""The part of the noise positions that belongs to agreements: no column and no pair has it, nor a selection."""
MODEL_ROWS = 50_000
"""Rows of the sample that says what the tree already tells about a pair: more would take longer and scatter less."""
MODEL_SEED = 0
"""Of that sample: fixed and public, so that it is a function of released values."""
FIRST_AIMED = 2
"""Pairs with a target that are chosen first, however few there are."""
BESIDE = 3
"""Columns beside a target: those that tell most of it, whose pairs are chosen after those with the target itself.

Fewer may all be consequences of the target, such as a cause of death; more leave fewer pairs for each.
"""
LIKELY = 0.7
"""How many scales of the noise of a choice a finer table must be worth more than the usual one."""

Table = tuple[int, tuple[int, int]]
"""A pair of columns, by its place among all pairs, and the most groups of the two in its table."""


class RankedColumn:
    """The rank cells of one released column, and coarser groups of them: public."""

    def __init__(
        self, margin: Floats, *, ordered: bool, listed: bool, blocks: Blocks | None, alone: int | None
    ) -> None:
        """Take the mass of every rank cell, their blocks, and the one of missing values: see `rank`.

        A `listed` column is a list of values, which may have more groups than others: see `table_sides`.
        """
        self.margin, self.listed, self.ordered = margin, listed, ordered
        self._blocks, self._alone = blocks, alone
        self._groups: dict[int, tuple[Groups, Floats]] = {}

    def groups(self, most: int) -> tuple[Groups, Floats]:
        """Return the group of every rank cell, of at most `most` groups, and the masses of the groups."""
        if most not in self._groups:
            groups = np.arange(len(self.margin))
            if most < len(groups):
                groups = rank(self.margin, most, ordered=self.ordered, blocks=self._blocks, alone=self._alone)
            self._groups[most] = groups, np.bincount(groups, weights=self.margin).astype(np.float64)
        return self._groups[most]


class TruePairs:
    """How many rows lie in each pair of rank cells, for all pairs of columns. PRIVATE: shows nothing, used up once.

    Guarantee:  privacy   `chosen` is (rounds e_s + t tree pairs e_t + x extra pairs e_x + (t + x) e_z)-DP: each table
                          is a histogram of cells that earlier releases fixed, so a person changes it by at most D in
                          l_1
    """

    def __init__(
        self,
        names: Sequence[tuple[int, int]],
        counts: Sequence[CellCounts],
        columns: Sequence[RankedColumn],
        plan: ColumnPlan,
        tuning: Tuning,
        targets: Collection[int] = (),
    ) -> None:
        """Take the pairs of columns, their counts, which stay the caller's to destroy, and the released columns.

        Of the pairs, those with a column of the `targets` are chosen first: a public list.
        """
        self._names, self._counts, self._columns, self._plan, self._tuning = names, counts, columns, plan, tuning
        self._targets = frozenset(targets)
        self._aimed = np.array([bool(self._targets.intersection(pair)) for pair in names], bool)

    def chosen(self, key: Key) -> tuple[Pair, ...]:
        """Return the noisy tables of pairs that join the columns, then of those that the tree tells least about."""
        plan = self._plan
        small = [self._true(t, self._score_sides) for t in range(len(self._names))] if plan.rounds else []  # PRIVATE
        tree = self._tree(small, key)
        pairs = self._measured(self._shaped(tree, 0, None, key, 0), plan.tree_budget, key, 0)
        if plan.extra_pairs:
            model = Model.of_pairs([column.margin for column in self._columns], pairs, plan.rows)
            sample = model.sample(min(plan.rows, MODEL_ROWS), np.random.default_rng(MODEL_SEED))
            extra = self._extra(small, tree, model, sample, key)
            shaped = self._shaped(extra, 1, sample, key, len(tree))
            pairs += self._measured(shaped, plan.extra_budget, key, len(tree))
        return tuple(pairs)

    def agreements(self, key: Key) -> Agreements | None:
        """Return the noisy agreements of all pairs of columns, if the plan has them: e_a-DP for all of them together.

        Halves of columns are made of released masses. One row is a sign for every column, and adds the product of two
        signs to each agreement: exact integers. Noise for rows of signs (noise/signs.py) of scale D / e_a costs e_a;
        with a delta each has Gaussian noise, and squares add up.
        """
        plan = self._plan
        if not plan.agreement_pairs:
            return None
        halves = [two_halves(column.margin, ordered=column.ordered) for column in self._columns]
        true = np.array([agreement_of(self._table(t), halves[i], halves[j]) for t, (i, j) in enumerate(self._names)])
        if plan.privacy.delta:
            noisy = add_noise(true, 0, law_of(plan.law, plan.agreement_scale), key, AGREEMENTS, 1)
        else:
            noisy = true + sign_noise(plan.active, plan.agreement_scale, key, part=AGREEMENTS)  # PRIVATE + noise
        return Agreements(tuple(self._names), tuple(halves), noisy, plan.agreement_scale, plan.law)

    # ------------------------------------------------------------------------------------------------- the choice

    def _tree(self, small: Sequence[NDArray[np.int64]], key: Key) -> list[int]:
        """Return pairs that join the columns, chosen one by one for being far from independent, by noisy maxima.

        With few rows there are fewer than a whole tree needs: columns that are left apart are taken as independent.

        Which pairs may still be chosen follows from those chosen before. The scores are PRIVATE: a person changes each
        by at most D (`score`), as what is expected comes from released margins, never from true ones. What
        noise would cost is taken off: a public number.
        """
        plan = self._plan
        if not plan.rounds:
            return list(range(plan.tree_pairs))  # two columns: one pair, nothing to choose
        scores = np.array(
            [
                score(true, self._expected(t, self._score_sides, None)) - self._price(t, 0)
                for t, true in enumerate(small)
            ]
        )
        first, second = np.array(self._names).T
        component, tree = np.arange(len(self._columns)), list[int]()
        while len(tree) < plan.tree_pairs:
            able = self._among(np.flatnonzero(component[first] != component[second]), len(tree), plan.tree_pairs)
            t = int(able[self._winner(scores[able], key, len(tree), plan.round_budget)])
            tree.append(t)
            component[component == component[second[t]]] = component[first[t]]
        return tree

    def _extra(
        self,
        small: Sequence[NDArray[np.int64]],
        tree: Sequence[int],
        model: Model,
        sample: Sequence[RankCells],
        key: Key,
    ) -> list[int]:
        """Return further pairs, whose tables are far from what the tree says of them, by noisy maxima.

        What is expected is counted in a sample of the model of the released tree: public, with a public seed. So a
        person changes each score by at most D here as well.
        """
        scores = np.array(
            [
                score(small[t], self._expected(t, self._score_sides, sample)) - self._price(t, 1)
                for t in range(len(self._names))
            ]
        )
        beside = self._beside_targets(model)
        left, extra = np.ones(len(self._names), bool), list[int]()
        left[list(tree)] = False
        while len(extra) < self._plan.extra_pairs:
            able = self._among(np.flatnonzero(left), len(extra), self._plan.extra_pairs, beside)
            t = int(able[self._winner(scores[able], key, len(tree) + len(extra), self._plan.round_budget)])
            extra.append(t)
            left[t] = False
        return extra

    def _shaped(
        self, chosen: Sequence[int], layer: int, sample: Sequence[RankCells] | None, key: Key, first: int
    ) -> list[Table]:
        """Return the chosen pairs, each with the sides of its table: usual ones, or finer ones that tell more.

        Which of the two is a noisy maximum of what they are worth: PRIVATE, and a person changes each by at most D
        (`worth`). Where both tables pack the values of lists alike, nothing is read and nothing chosen: all that the
        plan has for these pairs, (pairs e_z), is for the others. Noise is no reason for a finer table: it must be worth
        more by what noise is likely to add, a public number.
        """
        plan, usual, finer = self._plan, self._sides, self._finer_sides
        open_ = [t for t in chosen if plan.shape_budget and self._tells_apart(t, usual(t, layer), finer(t, layer))]
        found = list[Table]()
        for place, t in enumerate(chosen, first):
            won = 0
            if t in open_:
                budget = plan.shape_budget * len(chosen) / len(open_)
                values = [self._worth(t, sides, layer, sample) for sides in (usual(t, layer), finer(t, layer))]
                values[1] -= round(LIKELY * float(plan.privacy.choice_scale(budget)))
                won = self._winner(np.array(values), key, plan.rounds + place, budget)
            found.append((t, (usual, finer)[won](t, layer)))
        return found

    def _tells_apart(self, t: int, usual: tuple[int, int], finer: tuple[int, int]) -> bool:
        """Say whether a list of values has more groups in the finer table of a pair: public."""
        groups = zip(self._names[t], self._groups(t, usual), self._groups(t, finer), strict=True)
        return any(self._columns[j].listed and len(more) > len(few) for j, (_, few), (_, more) in groups)

    def _worth(self, t: int, sides: tuple[int, int], layer: int, sample: Sequence[RankCells] | None) -> int:
        """Return what a table of these sides would tell: PRIVATE, see `worth`."""
        expected = self._expected(t, sides, sample)
        scale, side = (self._plan.tree_scale, self._plan.extra_scale)[layer], self._plan.pair_sides[layer]
        noise = float(scale) * (side * side / expected.size) ** self._plan.pair_power  # larger tables get more budget
        return worth(self._true(t, sides), expected, noise, clear=self._tuning.finer_clear)

    def _among(
        self, able: NDArray[np.intp], chosen: int, wanted: int, beside: NDArray[np.bool_] | None = None
    ) -> NDArray[np.intp]:
        """Return the pairs to choose among: for the first half, or two, those with a target, then those `beside` one.

        Public: targets are declared, and so is how many pairs there are. Where no such pair is left, all come into
        question.
        """
        wishes = [self._aimed] * (chosen < max(wanted / 2, FIRST_AIMED)) + [beside]
        narrowed = (able[wish[able]] for wish in wishes if wish is not None)
        return next((pairs for pairs in narrowed if len(pairs)), able)

    def _beside_targets(self, model: Model) -> NDArray[np.bool_] | None:
        """Say which pairs have one of the columns that tell most of a target, by the released tables: public.

        What a column says of the target given these is known only with its tables with them: half of an effect that
        age hides is found in the table of sex and age.
        """
        told = {j: 0.0 for pair in self._names for j in pair if j not in self._targets}
        for i, j, strength in model.strengths():
            for target, other in ((i, j), (j, i)):
                if target in self._targets and other in told:
                    told[other] = max(told[other], strength)
        most = {j for j in sorted(told, key=lambda j: -told[j])[:BESIDE] if told[j] > 0}
        return np.array([bool(most.intersection(pair)) for pair in self._names], bool) if most else None

    def _winner(self, scores: NDArray[np.int64], key: Key, round_: int, budget: Fraction) -> int:
        """Return the winner of one round: budget-DP, or with a delta budget-zCDP, with fresh noise."""
        privacy = self._plan.privacy
        if privacy.delta:
            scale = privacy.choice_scale(budget)
            return exponential_choice(scores, scale=scale, key=key, round_=round_, part=PART)
        return noisy_max(scores, privacy=privacy, budget=budget, key=key, round_=round_)

    # ------------------------------------------------------------------------------------------------- tables

    def _groups(self, t: int, sides: tuple[int, int]) -> tuple[tuple[Groups, Floats], tuple[Groups, Floats]]:
        """Return the groups of the two columns of a pair, at most so many each, and their masses: public."""
        i, j = self._names[t]
        return self._columns[i].groups(sides[0]), self._columns[j].groups(sides[1])

    def _sides(self, t: int, layer: int) -> tuple[int, int]:
        """Return the most groups of the two columns of a pair in its table: public."""
        one, two = (self._columns[j] for j in self._names[t])
        cells, listed = (len(one.margin), len(two.margin)), (one.listed, two.listed)
        return table_sides(cells, listed, self._plan.pair_sides[layer], self._plan.list_room)

    def _finer_sides(self, t: int, layer: int) -> tuple[int, int]:
        """Return the same for its finer table: public."""
        one, two = (self._columns[j] for j in self._names[t])
        cells, listed = (len(one.margin), len(two.margin)), (one.listed, two.listed)
        side, room = self._plan.pair_sides[layer], self._plan.list_room
        return finer_sides(cells, listed, side, room, self._tuning.most_groups)

    def _true(self, t: int, sides: tuple[int, int]) -> NDArray[np.int64]:
        """Return the PRIVATE counts of a pair on public groups: sums of disjoint cells, so still a histogram."""
        (rows, _), (columns, _) = self._groups(t, sides)
        return np.asarray(merge_groups(self._table(t), rows, columns), np.int64)

    def _table(self, t: int) -> NDArray[np.int64]:
        """Return the PRIVATE counts of a pair on rank cells."""
        i, j = self._names[t]
        return self._counts[t].counts.reshape(len(self._columns[i].margin), len(self._columns[j].margin))

    def _cells(self, t: int, sides: tuple[int, int]) -> int:
        """Return how many cells the table of a pair has: public."""
        (_, rows), (_, columns) = self._groups(t, sides)
        return len(rows) * len(columns)

    def _price(self, t: int, layer: int) -> int:
        """Return what the noise of its table would take off a pair's worth: public."""
        scale = (self._plan.tree_scale, self._plan.extra_scale)[layer]
        return round(self._tuning.noise_price * self._cells(t, self._sides(t, layer)) * scale)

    @property
    def _score_sides(self) -> tuple[int, int]:
        side = min(self._plan.pair_sides[0], self._tuning.score_side)
        return side, side

    def _expected(self, t: int, sides: tuple[int, int], sample: Sequence[RankCells] | None) -> Floats:
        """Return what a sample of the model says of a pair, or without one released margins alone: public."""
        (i, j), ((first, rows), (second, columns)) = self._names[t], self._groups(t, sides)
        if sample is None:
            product: Floats = np.outer(rows, columns) / self._plan.rows
            return product
        code = (first * len(columns)).astype(np.uint32).take(sample[i]) + second.astype(np.uint32).take(sample[j])
        counted = np.bincount(code, minlength=len(rows) * len(columns)).reshape(len(rows), -1)
        return np.asarray(counted * (self._plan.rows / len(code)), np.float64)

    def _measured(self, chosen: Sequence[Table], budget: Fraction, key: Key, first: int) -> list[Pair]:
        """Return the chosen pairs with noise, places from `first` on: (pairs * budget)-DP, as their budgets sum to it.

        Which budget a table gets follows from its cells and those of the others chosen: earlier releases fixed them.
        """
        scales = self._plan.pair_scales(budget, [self._cells(*table) for table in chosen])
        places = range(first, first + len(chosen))
        return [
            self._noisy(*table, scale, key, place) for table, scale, place in zip(chosen, scales, places, strict=True)
        ]

    def _noisy(self, t: int, sides: tuple[int, int], scale: Fraction, key: Key, place: int) -> Pair:
        """Return a chosen pair with noise: (D / scale)-DP, as its table changes by at most D in l_1."""
        (i, j), ((rows, _), (columns, _)) = self._names[t], self._groups(t, sides)
        true, part = self._true(t, sides), 1 + len(self._columns) + place  # PRIVATE; a part of the noise of its own
        noisy = add_noise(true.ravel(), 0, law_of(self._plan.law, scale), key, part, 1).reshape(true.shape)
        return Pair(i, j, rows, columns, noisy, scale, self._plan.law)

    def __repr__(self) -> str:
        """Show nothing."""
        return "TruePairs(private)"
