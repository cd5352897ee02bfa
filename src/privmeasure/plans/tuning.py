"""The tuned constants of the column tree as one value, which tests and benchmarks replace field by field.

All of them act before or while noise is drawn: on how epsilon is split, on which cells are measured, on which pairs are
chosen. What came of them is in the plan, the ranks and the pairs of a release, so a file needs no `Tuning` to give its
rows again. Constants that act afterwards, on every release that is loaded, are no part of it: see `privmeasure.model`.

They were chosen on ten real tables. `make bench-constants` changes one at a time there and compares four errors: total
variation of columns and of pairs, W1 of columns, and W1 of projections of whole rows ("sliced"). Numbers below are
means over the ten tables at epsilon = 1, unless said otherwise; "flat" means that no error moves by more than 3 %. Each
is of the run by which its value was chosen. Other values have changed since, so that a run today gives other numbers.

Notation:   noise scale D / e of a step that has budget e    D sensitivity    rows per noise scale = rows e / D
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from privmeasure.errors import ArgumentError, is_whole
from privmeasure.plans.columns import MOST_PAIR_POWER

Shares = tuple[float, float, float]
"""The least, the usual and the most of a share."""

WIDEST_SCORE = 256
"""The most groups of a column in a table that is scored: a pair of groups is then a word of 16 bits."""
EXTRA_LIMIT = 8
"""Of `most_extra`: of the most columns, every table then has noise of its own, and a part of the file."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the column tree does with its budget, as far as that was found by trying. Frozen; the default is `TUNED`.

    Guarantee:  privacy   any value that is accepted keeps the promise: shares are at most 1 and exact where they
                          multiply budgets, and no field depends on data
                accuracy  the guarantees of the plan are computed for the values at hand

    Examples:
        >>> from dataclasses import replace
        >>> replace(TUNED, most_extra=0.0) == TUNED, TUNED.columns_share[1]
        (False, 0.5)
        >>> replace(TUNED, size_share=Fraction(2))
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: size_share must be a fraction between 0 and 1, got Fraction(2, 1).
    """

    size_share: Fraction = Fraction(1, 64)
    """The part of epsilon that buys a private number of rows, before anything else is known.

    The number only chooses resolutions, and the columns know it better later: more takes from them and gives little
    back, less lets noise choose the resolutions of a table of few rows. By judgement: the benchmark does not vary it.
    """
    usual_rows: float = 3500.0
    """Rows per column and noise scale of the whole epsilon at which `columns_share` is usual.

    With fewer rows the share grows by its slope and pairs get less, with more rows it falls: the noise of columns is in
    everything, that of pairs is cut down by their few cells. A larger number moves the share up for every table. By
    judgement: the benchmark varies the share itself.
    """
    columns_share: Shares = (0.42, 0.5, 0.89)
    """The part of epsilon, after the size, for the columns: at least, usually and at most.

    A tenth more makes single columns 14 % better and pairs 5 % worse, a tenth less columns 21 % worse and pairs 2 %
    better: a compromise between the two. The most is for tables of few rows, which noise hides: with 0.7 columns of
    4,000 and 6,000 rows are 15 to 20 % worse at epsilon = 0.1 and pairs 7 to 10 %.
    """
    columns_slope: float = 0.2
    """How much `columns_share` grows for a tenth of the usual rows.

    With 0 columns are 27 % worse at epsilon = 0.1; with 0.4 nothing there changes by more than 3 % in the mean.
    """
    selection_share: float = 0.05
    """The part of epsilon, after the size, for choosing pairs.

    Few bits with large signals, so that little is enough: flat up to twice as much. With half of it sliced W1 is 4 %
    worse, on one table a third. Twice as much for few rows makes pairs 2 % and sliced W1 4 % worse at epsilon = 0.1.
    """
    split_power: float = 0.45
    """The budget of a column grows with (cells that matter)^split_power.

    In theory 1/2 is best for total variation, which adds up over cells, and 1/4 for W1; 0 would give all columns the
    same. From 0.4 to 0.5 nothing changes by more than 4 %.
    """
    coarse_level: int = 5
    """A number is measured on 2^coarse_level equal cells of its range first: 32, about what people look at.

    More leave each cell fewer rows and more noise, fewer hide the shape of the column. By judgement: the benchmark
    varies what the coarse cells get, not their number.
    """
    coarse_share: Fraction = Fraction(4, 5)
    """The part of a number's budget that its coarse cells get; its fine cells get the rest.

    More makes coarse histograms better and fine ones worse: with 1/2 the total variation of columns is 24 % worse, with
    9/10 their W1 is 12 % worse.
    """
    rows_per_cell: float = 8
    """Rows per noise scale that a fine cell of a number would hold, if rows were spread evenly.

    More means fewer fine cells, which hold less noise and tell less: 16 makes the W1 of columns 6 % worse; 4 is flat.
    """
    deepest_level: int = 12
    """The deepest fine cells of a number: at most 4096, reached with many rows alone.

    More cells would cost memory for differences of 1/4096 of the range. By judgement: the benchmark does not vary it.
    """
    deepest_joint_level: int = 16
    """The deepest cells of a place or a group of columns, which has no coarse cells that everyone looks at.

    As for a number, but its cells are shared by all its columns. By judgement: the benchmark does not vary it.
    """
    tree_rows: float = 2
    """Rows per noise scale and cell in the table of a pair of the tree, which has as many groups on either side.

    Fewer mean more groups: finer tables with more noise. A column of few values leaves more groups to a list of values,
    which packs together what has nothing in common, but not to a number: long tables keep more noise than square ones.
    Flat from half to twice, moved together with `extra_rows`; twice as many make pairs of 300,000 rows a fifth worse.
    """
    extra_rows: float = 4
    """The same for an extra pair, whose table has no more groups than those of the tree; see `tree_rows`."""
    extra_weight: Fraction = Fraction(7, 10)
    """The budget of an extra pair over that of a pair of the tree.

    Extra pairs are weaker, or known in part from the tree. More gives less noise to them and more to the tree. Flat
    from 0.5 to 1.
    """
    fewest_pairs: Fraction = Fraction(2, 5)
    """Pairs of the tree, per column, that are bought however few the rows are.

    A whole tree has one less than columns: with few rows its last pairs are weak ones, and tables that noise hides are
    worse than none. More joins columns that seem related by chance, fewer leaves related ones apart: 1 makes sliced W1
    3 % worse at epsilon = 0.1, 3/5 is flat, tables of few rows 2 to 4 % worse. Without effect where rows buy the tree.
    """
    narrow_pairs: int = 3
    """Pairs of the tree that are bought however few the rows and the columns are: up to four columns are joined.

    By judgement: the tables of the benchmark have more columns.
    """
    pair_rows: float = 140
    """Rows per noise scale that every pair of the tree keeps beyond `fewest_pairs`, until the tree is whole.

    Larger needs more rows for a whole tree. At epsilon = 0.1 twice as many make sliced W1 3 % worse, half as many is
    flat; without effect where rows buy the tree.
    """
    least_rows: float = 450
    """Rows per noise scale that every pair keeps where there are extra pairs: as many are bought as leave so many.

    Larger means fewer extra pairs: 900 makes sliced W1 10 % worse; 225 is flat.
    """
    most_extra: float = 1.5
    """The most extra pairs per column, however many rows there are: beyond, tables contradict each other.

    Twice as many make columns and pairs 5 % worse, half as many sliced W1 6 % worse.
    """
    most_groups: int = 64
    """The most groups of a column in the table of a pair: reached with many rows alone.

    More cost memory and time, squared. Flat to 96; 40 makes pairs of 300,000 rows a third worse.
    """
    longest_list: int = 1024
    """The most groups of a list of values, in tables whose other column leaves it the cells, and in finer ones.

    With 128 pairs of 1,128 lecturers are half as far off again at epsilon = 4. More cost memory and time.
    """
    list_room: int = 2
    """How many times the cells of other tables those may have in which a column is a list of values.

    What is packed into one group is drawn as if it were alike; noise in cells of a list that are empty is cut off. With
    1 pairs of 105 destinations are 4 to 23 % worse, those of 1,128 lecturers 1 to 24 %; 3 and 4 are no better than 2.
    """
    pair_power: float = 0.3
    """The budget of a pair grows with (cells of its table)^pair_power, as that of a column with `split_power`.

    Larger gives small tables more noise. With 0 pairs are 1 %, 3 % and 4 % worse at epsilon = 0.1, 1 and 4, lists of
    values up to 10 %; 0.5 is flat.
    """
    agreement_share: float = 0.1
    """The part of epsilon, after the size, for agreements: taken from pairs, a third of which it is at most.

    On seven open tables of `make bench-open` sliced W1 is 12 % better with them than without at epsilon = 1, 17 % at 4,
    excess W1 16 and 18 %, pairs 0 and 7 %. With half as much sliced W1 is about 5 and 2 % worse, excess W1 8 and 3 %,
    and pairs of the two largest tables up to 4 % better at epsilon = 1.
    """
    agreement_rows: float = 6
    """Rows per standard deviation of the noise of an agreement, below which none are bought.

    More leave them out where they still tell something: of 17 columns and 4,000 rows at epsilon = 1 (9 rows) sliced W1
    is a tenth better with them. At epsilon = 0.1 tables that just have so many rows are 1 to 3 % worse.
    """
    whole_blocks: bool = True
    """Whether groups of a number are made of whole coarse cells where these are not clearly heavier than a group.

    Coarse cells were measured with less noise than fine ones, and groups that follow them inherit it: without it pairs
    are 4 % worse.
    """
    clear: float = 10.0
    """A coarse cell is cut into parts, for groups of about equal mass, whose mass is so many standard deviations at
    least of their noise.

    Larger cuts less: groups are less even and less noisy. From 5 to 20 all errors are flat in the mean; on the four
    tables of the rivals' benchmark 20 makes pairs 4.5 % better.
    """
    score_side: int = 16
    """The most groups of a column in a table that is scored for the choice of pairs.

    More see finer dependence and more of the scatter of sampling, and take longer. Flat from 8 to 32.
    """
    shape_share: Fraction = Fraction(1, 3)
    """The part of the selection's budget for the resolution of chosen tables, where a list of values is packed.

    On three simulated tables, of codes with their chapters and the like, pairs are 4 % better with 1/2 than with 1/4 at
    epsilon = 1 and 1 to 2 % worse with 1/8; at epsilon = 4 it is flat. More is less for the choice of pairs.
    """
    finer_clear: float = 3.0
    """How many times its noise a cell must be off what is expected, to count for a finer table or against it.

    Fewer choose more of them: on those tables pairs are 6 % worse with 1.5, and 2 to 3 % with 6.
    """
    noise_price: float = 0.3
    """What a noise scale in a cell of a pair's table takes off its score: the part of noise that no smoothing removes.

    Larger prefers pairs of columns with few values; 0 would choose as if tables had no noise. Flat from
    0.15 to 0.5; with 0 sliced W1 is 3 % worse, which may be chance.
    """

    def __post_init__(self) -> None:
        """Refuse what would break the promise, or a plan; whether a value is wise is for the benchmark to say."""
        for name in ("size_share", "coarse_share", "shape_share"):
            share = getattr(self, name)
            self._check(name, "a fraction between 0 and 1", isinstance(share, Fraction) and 0 < share < 1)
        for name in ("extra_weight", "fewest_pairs"):
            share = getattr(self, name)
            self._check(name, "a fraction above 0 and at most 1", isinstance(share, Fraction) and 0 < share <= 1)
        least, usual, most = self.columns_share
        rising = 0 < least <= usual <= most < 1
        self._check("columns_share", "three shares above 0 and below 1 that do not fall", rising)
        self._check("selection_share", "above 0 and below 1", 0 < self.selection_share < 1)
        if most + self.selection_share >= 1:
            raise ArgumentError("columns_share and selection_share must leave something for pairs, even at most.")
        self._check("agreement_share", "at least 0 and below 1", 0 <= self.agreement_share < 1)
        self._check("pair_power", "from 0 to 0.9", 0 <= self.pair_power <= MOST_PAIR_POWER)
        self._check("most_extra", f"from 0 to {EXTRA_LIMIT}", 0 <= self.most_extra <= EXTRA_LIMIT)
        for name in ("columns_slope", "split_power", "noise_price"):
            self._check(name, "finite and at least 0", 0 <= getattr(self, name) < math.inf)
        rows = ("usual_rows", "rows_per_cell", "tree_rows", "extra_rows", "pair_rows", "least_rows", "agreement_rows")
        for name in (*rows, "clear", "finer_clear"):
            self._check(name, "finite and above 0", 0 < getattr(self, name) < math.inf)
        for name, low in (
            ("coarse_level", 1),
            ("deepest_level", 1),
            ("deepest_joint_level", 1),
            ("most_groups", 2),
            ("longest_list", 2),
            ("list_room", 1),
            ("narrow_pairs", 1),
        ):
            number = getattr(self, name)
            self._check(name, f"a whole number of at least {low}", is_whole(number) and number >= low)
        fine = is_whole(self.score_side) and 2 <= self.score_side <= WIDEST_SCORE
        self._check("score_side", f"a whole number from 2 to {WIDEST_SCORE}", fine)

    def _check(self, name: str, expected: str, fine: bool) -> None:
        if not fine:
            raise ArgumentError(f"{name} must be {expected}, got {getattr(self, name)!r}.")


TUNED = Tuning()
"""The values that were chosen: what every release has, unless a test or a benchmark says otherwise."""

GAUSSIAN_TUNED = Tuning(
    split_power=0.6, pair_rows=70, least_rows=225, most_extra=3.0, pair_power=0.5, agreement_share=0.05
)
"""The same for Gaussian noise, which pays for many measurements with the square root of their number.

By the same ten tables, at delta = 1e-6: half of `most_extra` makes pairs 5 to 13 % and sliced W1 14 to 18 % worse at
epsilon = 1 and 4; twice of it sliced W1 5 to 9 % better, one table's pairs a quarter worse, and drawing takes twice as
long. Half and twice of `least_rows`, all else of `extra_weight`, and `split_power` of 0.5 are flat; twice the
`selection_share` makes pairs 2 to 3 % worse, a tenth less for columns these 5 to 10 %, half and twice the rows per cell
of a table pairs 1 to 5 %; without `pair_power` pairs are 3 % worse at epsilon = 1 and 4, with 0.3 flat. On seven
open tables agreements make sliced W1 13 and 6 % better at epsilon = 1 and 4, excess W1 15 and 16 %, pairs 4 and 6 %.
"""


def aimed(tuning: Tuning) -> Tuning:
    """Return a tuning for a table with one or two targets: where rows are few, fewer pairs, and less for the columns.

    Of many pairs that noise hides none says anything about the target; two that are chosen among its own do. On open
    tables at epsilon = 0.1 (`benchmarks/held_out.py --open --downstream --target`) the AUC of boosting rises from 0.67
    to 0.85 on chains and from 0.53 to 0.58 on vietnam; pairs are as good as before there, and on simulated tables of
    fewer rows up to 6 % worse, columns 8 %. Without the cap on the columns' share these are as before, and half of the
    gain is lost. Without effect where rows buy the tree.
    """
    least, usual, most = tuning.columns_share
    return replace(tuning, columns_share=(least, usual, min(most, 0.8)), fewest_pairs=Fraction(1, 1000), narrow_pairs=2)


AIMED, GAUSSIAN_AIMED = aimed(TUNED), aimed(GAUSSIAN_TUNED)
