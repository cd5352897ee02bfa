"""What noise a release draws, written down where it is drawn: scales, positions, and what they cost.

No formula of the mechanisms is repeated here. The scale of a draw is that of the sampler that draws, and the positions
are those of the words that the key hands out.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privmeasure.mechanisms import exponential
from privmeasure.mechanisms.choice import PART
from privmeasure.mechanisms.pairs import AGREEMENTS
from privmeasure.noise.entropy import Key
from privmeasure.noise.gaussian import DiscreteGaussian
from privmeasure.noise.laplace import DiscreteLaplace
from privmeasure.noise.normal import Normals
from privmeasure.noise.signs import RandomCorrelations
from privmeasure.privacy import Privacy

COUNTS, CHOICE, SIGNS = "counts", "choice", "signs"


@dataclass(frozen=True)
class Draw:
    """One call of a sampler: noise of a scale on counts, for a choice, or for rows of signs."""

    use: str
    sampler: str
    scale: Fraction
    part: int
    level: int
    cells: np.ndarray


@dataclass
class Drawn:
    """Everything that was drawn, in order, and which words each draw has read."""

    draws: list[Draw] = field(default_factory=list)
    words: dict[tuple[int, int, int], list[tuple[int, np.ndarray]]] = field(default_factory=lambda: defaultdict(list))
    """For a part, a level and an attempt: who has read which cells."""
    readers: list[int] = field(default_factory=list)
    """Who is reading now, the outermost first: a sampler may ask another one."""
    last: int = 0

    def scales(self) -> dict[tuple[int, int], Fraction]:
        """The one scale of all noise on counts of a part and a level."""
        found: dict[tuple[int, int], set[Fraction]] = defaultdict(set)
        for draw in self.draws:
            if draw.use == COUNTS:
                found[draw.part, draw.level].add(draw.scale)
        assert all(len(scales) == 1 for scales in found.values()), found
        return {place: next(iter(scales)) for place, scales in found.items()}

    def cells(self, part: int, level: int) -> np.ndarray:
        """The cells of a part and a level that have noise on their counts."""
        drawn = [d.cells for d in self.draws if d.use == COUNTS and (d.part, d.level) == (part, level)]
        return np.concatenate(drawn) if drawn else np.zeros(0, np.uint64)

    def cost(self, privacy: Privacy) -> Fraction:
        """What all this costs: epsilon, or rho with a delta, exactly, by the sensitivities of the proofs.

        A person changes the counts of disjoint cells by D in sum, and D_2^2 in the sum of squares, a score or a sum of
        signs by D; D is the number of rows of a person, or twice as many where they are replaced.
        """
        moved = privacy.rows_per_person * (1 if privacy.neighbours == "add-remove" else 2)
        squared = privacy.rows_per_person**2 * (1 if privacy.neighbours == "add-remove" else 2)
        total = Fraction(0)
        for (part, level), scale in self.scales().items():
            if part == AGREEMENTS:  # every row changes every sum
                total += len(self.cells(part, level)) * Fraction(moved**2) / (2 * scale**2)
            else:
                total += Fraction(squared) / (2 * scale**2) if privacy.delta else moved / scale
        for scales in self.choices().values():
            (scale,) = scales
            total += Fraction(moved**2) / (2 * scale**2) if privacy.delta else 2 * moved / scale
        signs = {draw.scale for draw in self.draws if draw.use == SIGNS}
        assert len(signs) <= 1, signs
        return total + sum((moved / scale for scale in signs), Fraction(0))

    def choices(self) -> dict[tuple[int, int], set[Fraction]]:
        """The scales of every private choice, by its number among those of the release."""
        found: dict[tuple[int, int], set[Fraction]] = defaultdict(set)
        for draw in self.draws:
            if draw.use == CHOICE:
                found[draw.level, int(draw.cells[0] >> np.uint64(48))].add(draw.scale)
        return found

    def shared_words(self) -> list[str]:
        """Positions whose word was read by two draws, or for two cells of one draw: there must be none."""
        wrong = [
            f"part {d.part}, level {d.level}: one cell twice in a draw"
            for d in self.draws
            if len(np.unique(d.cells)) < len(d.cells)
        ]
        for (part, level, attempt), read in self.words.items():
            by_reader: dict[int, list[np.ndarray]] = defaultdict(list)
            for reader, cells in read:
                by_reader[reader].append(cells)
            once = [np.unique(np.concatenate(cells)) for cells in by_reader.values()]  # a reader may look again
            cells, times = np.unique(np.concatenate(once), return_counts=True)
            if (times > 1).any():
                wrong.append(f"part {part}, level {level}, attempt {attempt}: cell {cells[times > 1][0]} in two draws")
        return wrong


@contextmanager
def recorded(*, words: bool = False) -> Iterator[Drawn]:
    """Write down what is drawn; with `words`, the position of every random word too. For releases on one thread."""
    drawn = Drawn()

    def reads(reader: int, call: Any, *arguments: Any, **named: Any) -> Any:
        drawn.readers.append(reader)
        try:
            return call(*arguments, **named)
        finally:
            drawn.readers.pop()

    def new_reader() -> int:
        drawn.last += 1
        return drawn.last

    def sampler(kind: Any) -> Any:
        real = kind.draw

        def draw(self: Any, key: Key, *, part: int, level: int, cells: np.ndarray) -> Any:
            if not drawn.readers:
                use = CHOICE if part == PART else COUNTS
                drawn.draws.append(Draw(use, kind.__name__, self.scale, part, level, np.array(cells)))
            return reads(new_reader(), real, self, key, part=part, level=level, cells=cells)

        return draw

    def tries(gaps: Any, place: Any, scale: Fraction, key: Key, part: int, level: int) -> Any:
        drawn.draws.append(Draw(CHOICE, "exponential", scale, part, level, np.array(place)))
        return reads(new_reader(), real_tries, gaps, place, scale, key, part, level)

    def correlations(self: RandomCorrelations, columns: int, key: Key, *, part: int, level: int) -> None:
        self.seen = part, level  # type: ignore[attr-defined]
        real_correlations(self, columns, key, part=part, level=level)

    def brackets(self: RandomCorrelations, scale: Fraction, count: int) -> Any:
        part, level = self.seen  # type: ignore[attr-defined]
        drawn.draws.append(Draw(SIGNS, "signs", scale, part, level, np.zeros(1, np.uint64)))
        return real_brackets(self, scale, count)

    def deviates(self: Normals, key: Key, **where: Any) -> None:
        self.reader = new_reader()  # type: ignore[attr-defined]
        reads(self.reader, real_deviates, self, key, **where)  # type: ignore[attr-defined]

    def digits(self: Normals, count: int) -> Any:
        return reads(self.reader, real_digits, self, count)  # type: ignore[attr-defined]

    def read(self: Key, *, part: int, level: int, cells: np.ndarray, attempt: int = 0) -> Any:
        reader = drawn.readers[0] if drawn.readers else new_reader()
        drawn.words[part, level, attempt].append((reader, np.array(cells)))
        return real_words(self, part=part, level=level, cells=cells, attempt=attempt)

    real_tries, real_words = exponential._tries, Key.words
    real_correlations, real_brackets = RandomCorrelations.__init__, RandomCorrelations.brackets
    real_deviates, real_digits = Normals.__init__, Normals.digits
    with pytest.MonkeyPatch.context() as patch:
        for kind in (DiscreteLaplace, DiscreteGaussian):
            patch.setattr(kind, "draw", sampler(kind))
        patch.setattr(exponential, "_tries", tries)
        patch.setattr(RandomCorrelations, "__init__", correlations)
        patch.setattr(RandomCorrelations, "brackets", brackets)
        patch.setattr(Normals, "__init__", deviates)
        patch.setattr(Normals, "digits", digits)
        if words:
            patch.setattr(Key, "words", read)
        yield drawn
