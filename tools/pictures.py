"""Draw the pictures of docs/pictures from the code itself: on simulated points and on the examples.

Steps of the mechanism are those of one release, made with a seed: its noisy counts are in it, and the estimates are
made of them by the same functions. Truth is drawn beside them because the points are simulated. The pictures of
docs/gallery.md are made by running the page: each is that of the code above it. Text alternatives are the pages'.
"""

import contextlib
import html
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import privmeasure as pm
from privmeasure.domains import Box
from privmeasure.estimates.consistency import distribute, signed
from privmeasure.estimates.linear import level_variances, noise_variance
from privmeasure.estimates.passes import up_pass
from privmeasure.estimates.shrinkage import shrink
from privmeasure.report.canvas import BLUE, FAINT, GREEN, INK, ORANGE, STYLE, VARIABLES, colour_map, svg

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
DARK = {INK: "#e3e7ee", FAINT: "#7d8696", BLUE: "#6aa9ee", ORANGE: "#f09a58", GREEN: "#63c48d"}
"""What the house's colours become where a page is dark."""


def figure(rows: int, columns: int, *, width: float = 8.0, height: float = 3.0, **options: Any) -> Any:
    """Return the axes of a new figure, in rows and columns."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots(rows, columns, squeeze=False, **options)


def save(ax: Any, path: Path, words: str) -> None:
    """Write the figure of some axes as a file of its own, in light and dark, with its text alternative."""
    text = svg(ax, name=path.stem)
    wide, tall = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups()  # type: ignore[union-attr]
    colours = "".join(f"{VARIABLES[light]}: {dark}; " for light, dark in DARK.items())
    style = (
        f"<style>svg {{ font-family: sans-serif }} @media (prefers-color-scheme: dark) {{ svg {{ {colours}}} }}</style>"
    )
    head = f"<title>{html.escape(words)}</title>\n{style}"
    size = (f"{float(points) * 4 / 3:.0f}" for points in (wide, tall))
    text = text.replace('width="100%"', 'width="{}" height="{}"'.format(*size), 1)
    path.write_text(re.sub(r"(<svg[^>]*>)", lambda tag: f"{tag[1]}\n{head}", text, count=1) + "\n", encoding="utf-8")


def dots(ax: Any, x: Any, y: Any, size: float, colour: str, **options: Any) -> None:
    """Draw many dots as one path: a line of no length with round ends for each."""
    gaps = np.full(len(x), np.nan)
    across, up = (np.column_stack((a, a, gaps)).ravel() for a in (x, y))
    ax.plot(across, up, color=colour, lw=size, solid_capstyle="round", **options)


def stems(ax: Any, x: Any, y: Any, colour: str) -> None:
    """Draw a line from 0 to each value, all as one path."""
    gaps = np.full(len(x), np.nan)
    across, up = np.column_stack((x, x, gaps)).ravel(), np.column_stack((0 * x, y, gaps)).ravel()
    ax.plot(across, up, color=colour, lw=0.9, alpha=0.5)


# -------------------------------------------------------------------------------- how it works, on a line

LINE = Box([(0, 120)])
PEOPLE = 2_000


def ages() -> np.ndarray:
    """Return simulated ages: two bells, and many who are exactly 18."""
    rng = np.random.default_rng(8)
    kinds = rng.choice(3, PEOPLE, p=[0.5, 0.38, 0.12])
    return np.clip(
        np.select([kinds == 0, kinds == 1], [rng.normal(36, 9, PEOPLE), rng.normal(68, 8, PEOPLE)], 18.0), 0, 120
    )


class Steps:
    """One release of `ages`, and what its noisy counts become, step by step."""

    def __init__(self) -> None:
        """Release, and repeat the estimates from the released counts."""
        self.points = ages()[:, np.newaxis]
        synth = pm.Synthesizer(LINE, epsilon="1/2", neighbours="replace").fit(self.points, insecure_seed=21)
        self.release = synth.release_
        self.plan, self.noisy = self.release.plan, self.release.noisy
        self.levels, self.depth = self.plan.levels, self.plan.depth
        variances = {
            level: noise_variance(scale, self.plan.law)
            for level, scale in zip(self.levels, self.plan.scales, strict=True)
        }
        self.coarse = {0: np.full(1, PEOPLE, np.int64)}
        for last in self.levels:
            stage = {level: self.noisy[level].astype(float) for level in self.levels if level <= last}
            raw = up_pass(stage, variances, last, signed, blue=True)
            own = [2 * c for c in level_variances(variances, last, blue=True)[1:]]
            self.raw = [differences for (differences,) in raw]
            splits = shrink(raw, own, self.coarse, LINE)
            self.shrunk = [differences for (differences,) in splits]
            self.coarse[last] = distribute(np.full(1, PEOPLE, np.int64), list(splits), signed)
        self.masses = np.zeros(1 << self.depth, np.int64)
        self.masses[self.release.cells.astype(int)] = self.release.mass
        assert (self.masses == self.coarse[self.depth]).all()  # these are the steps of the release itself

    def true(self, level: int) -> np.ndarray:
        """Return the true counts of a level: known here, for the points are simulated."""
        return np.bincount(LINE.locate(self.points, level).astype(int), minlength=1 << level)

    def mass(self, level: int) -> np.ndarray:
        """Return the released masses of a level."""
        return self.masses.reshape(1 << level, -1).sum(axis=1)


def cut(_: Steps) -> Any:
    """Draw a square that is cut in half, and again: its cells and some points."""
    box = Box([(0, 10), (0, 10)])
    points = np.loadtxt(ROOT / "examples" / "city.csv", delimiter=",", skiprows=1)[:350]
    axes = figure(1, 5, width=8.6, height=2.1)
    for ax, level in zip(axes[0], (0, 1, 2, 4, 6), strict=True):
        cells = np.arange(1 << level, dtype=np.uint64)
        low, high = box.extent(cells, level)
        counts = np.bincount(box.locate(points, level).astype(int), minlength=1 << level)
        dots(ax, *points.T, 1.2, BLUE, alpha=0.6)
        for a, b in zip(low, high, strict=True):
            ax.add_patch(_rectangle(a, b))
        if level <= 2:
            for a, b, count in zip(low, high, counts, strict=True):
                ax.text(*(a + b) / 2, str(count), ha="center", va="center", size=11, color=INK, weight="bold")
        ax.set(xlim=(-0.2, 10.2), ylim=(-0.2, 10.2), aspect="equal", xticks=[], yticks=[])
        ax.set_title(f"level {level}: {1 << level} cell{'s' if level else ''}")
        for spine in ax.spines.values():
            spine.set_visible(False)
    return axes[0, 0]


def _rectangle(low: np.ndarray, high: np.ndarray) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(tuple(low), *(high - low), fill=False, ec=FAINT, lw=0.9)


def measured(steps: Steps) -> Any:
    """Draw the noisy counts of every measured level over the true ones."""
    axes = figure(len(steps.levels), 1, width=8.0, height=5.0, sharex=True)
    for ax, level, scale in zip(axes[:, 0], steps.levels, steps.plan.scales, strict=True):
        edges = np.linspace(0, 120, (1 << level) + 1)
        ax.stairs(steps.noisy[level], edges, fill=True, color=BLUE, alpha=0.45, lw=0, label="with noise")
        ax.stairs(steps.true(level), edges, color=ORANGE, lw=1.1, label="true count")
        ax.axhline(0, color=FAINT, lw=0.8)
        ax.set_title(f"level {level}: {1 << level:,} cells, noise of scale {float(scale):.1f}", loc="left")
        ax.set_ylabel("people in a cell")
    axes[0, 0].legend(loc="upper right", ncols=2)
    axes[-1, 0].set(xlabel="age (simulated)", xlim=(0, 120))
    return axes[0, 0]


def shrunk(steps: Steps) -> Any:
    """Draw the differences of the two halves of cells, as estimated and as kept."""
    axes = figure(2, 1, width=8.0, height=4.4, sharex=True)
    for ax, level in zip(axes[:, 0], (steps.levels[-2], steps.depth), strict=True):
        parents = 1 << (level - 1)
        middle = (np.arange(parents) + 0.5) * 120 / parents
        counts = steps.true(level)
        stems(ax, middle, steps.raw[level - 1], FAINT)
        dots(ax, middle, steps.raw[level - 1], 3, FAINT, label="estimated, with its noise")
        dots(ax, middle, counts[0::2] - counts[1::2], 4, ORANGE, label="true")
        dots(ax, middle, steps.shrunk[level - 1], 2.4, BLUE, label="kept")
        ax.axhline(0, color=FAINT, lw=0.8)
        ax.set_title(f"left half less right half of the {parents} cells of level {level - 1}", loc="left")
        ax.set_ylabel("people")
        ax.set_yscale("symlog", linthresh=20)
        ax.set_ylim(-400, 400)
        ax.set_yticks([-200, -20, 0, 20, 200], ["-200", "-20", "0", "20", "200"])
        ax.set_yticks([], minor=True)
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2)
    axes[-1, 0].set(xlabel="age (simulated)", xlim=(0, 120))
    return axes[0, 0]


def reconciled(steps: Steps) -> Any:
    """Draw a part of the tree: the mass of each cell, and how it is split between the two halves."""
    top, bottom = 4, 7
    masses = {level: steps.mass(level) for level in range(top, bottom + 1)}
    cell = max(
        range(1 << top),
        key=lambda c: (
            len({int(m) for m in masses[bottom][c << (bottom - top) : (c + 1) << (bottom - top)]})
            + 20 * any(_clipped(steps, masses, level, i) for level, i in _below(c, top, bottom))
            - 100 * (masses[top][c] > 150)
        ),
    )
    axes = figure(1, 1, width=8.0, height=3.6)
    ax = axes[0, 0]
    width = 1 << (bottom - top)
    for level in range(top, bottom + 1):
        many = 1 << (level - top)
        for i in range(many):
            x, y, c = (i + 0.5) * width / many, top - level, (cell << (level - top)) + i
            ax.text(
                x, y, f"{masses[level][c]}", ha="center", va="center", size=11, weight="bold",
                bbox={"boxstyle": "round,pad=0.35", "fc": "none", "ec": BLUE, "lw": 1.2}, color=INK,
            )  # fmt: skip
            if level < bottom:
                e = steps.shrunk[level][c]
                clipped = _clipped(steps, masses, level, c)
                ax.text(x, y - 0.38, f"{e:+.1f}", ha="center", va="center", size=9, color=ORANGE if clipped else GREEN)
                for side in (0.25, 0.75):
                    ax.plot([x, (i + side) * width / many], [y - 0.52, y - 0.82], color=FAINT, lw=1)
    low, high = LINE.extent(np.array([cell], np.uint64), top)
    for level in range(top, bottom + 1):
        ax.text(-0.35, top - level, f"level {level}", ha="right", va="center", size=9, color=INK)
    ax.set(xlim=(-1.2, width), ylim=(top - bottom - 0.4, 0.45))
    ax.set_axis_off()
    ax.set_title(f"the people of {low[0, 0]:g} to {high[0, 0]:g} years, split three times", loc="center")
    return ax


def _below(cell: int, top: int, bottom: int) -> Iterator[tuple[int, int]]:
    for level in range(top, bottom):
        yield from ((level, c) for c in range(cell << (level - top), (cell + 1) << (level - top)))


def _clipped(steps: Steps, masses: dict[int, np.ndarray], level: int, cell: int) -> bool:
    """Say whether a difference asks for more than the cell has."""
    return abs(steps.shrunk[level][cell]) > masses[level][cell] + 1


def released(steps: Steps) -> Any:
    """Draw released and true rows, and the area between their distribution functions, which is W1."""
    axes = figure(1, 2, width=8.6, height=2.9)
    left, right = axes[0]
    edges = np.linspace(0, 120, 65)
    left.stairs(steps.mass(6), edges, fill=True, color=BLUE, alpha=0.4, lw=0, label="released")
    left.stairs(steps.true(6), edges, color=ORANGE, lw=1.2, label="true")
    left.set(xlabel="age (simulated)", ylabel="people", xlim=(0, 120))
    left.legend(loc="upper right")
    edges = np.linspace(0, 120, (1 << steps.depth) + 1)
    ours, theirs = (np.concatenate(([0], np.cumsum(x))) / PEOPLE * 100 for x in (steps.masses, steps.true(steps.depth)))
    gap, wide = np.abs(ours - theirs), len(ours) // 5
    first = int(np.argmax(np.convolve(gap, np.ones(wide), "valid")))  # where most of the area is
    shown = slice(first, first + wide)
    right.fill_between(edges, ours, theirs, color=GREEN, alpha=0.5, lw=0, label="area between them: W1")
    right.plot(edges, ours, color=BLUE, lw=1.2, label="released")
    right.plot(edges, theirs, color=ORANGE, lw=1.2, label="true")
    right.set(xlabel="age (simulated)", ylabel="% who are younger", xlim=edges[[first, first + wide]])
    right.set_ylim(min(ours[shown].min(), theirs[shown].min()), max(ours[shown].max(), theirs[shown].max()))
    right.legend(loc="lower right")
    years = float(gap[:-1].mean()) / 100 * 120
    right.set_title(f"W1 here {years:.2f} years; guaranteed {120 * steps.plan.guarantee:.1f}", loc="left")
    return left


# -------------------------------------------------------------------------------- points, and a wide table


def city(_: Steps) -> Any:
    """Draw the simulated city beside a release of it."""
    points = np.loadtxt(ROOT / "examples" / "city.csv", delimiter=",", skiprows=1)
    square = pm.Box([(0, 10), (0, 10)])
    synth = pm.Synthesizer(square, epsilon=1, neighbours="add-remove").fit(points, insecure_seed=1)
    synthetic = synth.sample(seed=1)
    axes = figure(1, 2, width=8.6, height=4.5, sharey=True)
    titles = ("30,000 sensitive points (simulated)", f"{len(synthetic):,} points that anyone may see")
    for ax, rows, title, colour in zip(axes[0], (points, synthetic), titles, (ORANGE, BLUE), strict=True):
        table, *_ = np.histogram2d(*rows.T, bins=160, range=[(0, 10), (0, 10)])
        ax.pcolormesh(
            *(np.linspace(0, 10, 161),) * 2,
            np.log1p(table.T),
            cmap=colour_map(colour),
            vmin=0,
            vmax=3.4,
            rasterized=True,
        )
        ax.set(xlabel="km east", aspect="equal", xlim=(0, 10), ylim=(0, 10))
        ax.set_title(title)
    axes[0, 0].set_ylabel("km north")
    return axes[0, 0]


def pairs(_: Steps) -> Any:
    """Draw the columns of a wide table, and the pairs that a release measured together."""
    schema = pm.Schema.from_toml(ROOT / "examples" / "adult" / "adult.toml")
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove")
    release = synth.fit(ROOT / "examples" / "adult" / "adult.parquet", insecure_seed=1).release_
    told = release.measure.pair_information()
    names = [" and ".join(node) for node in schema.nodes]
    axes = figure(1, 1, width=7.2, height=4.6)
    ax = axes[0, 0]
    turn = np.linspace(0, 2 * np.pi, len(names), endpoint=False) + 0.1
    x, y = 1.55 * np.cos(turn), np.sin(turn)
    for first, second, bits in told:
        ax.plot(x[[first, second]], y[[first, second]], color=BLUE, lw=0.7 + 5 * min(bits, 1.0), alpha=0.55)
    ax.scatter(x, y, s=60, color=BLUE, zorder=3)
    for at, name in enumerate(names):
        side = "left" if x[at] > 0.2 else "right" if x[at] < -0.2 else "center"
        ax.text(1.07 * x[at], 1.07 * y[at] + 0.09 * np.sign(y[at]) * (side == "center"), name, ha=side, va="center")
    ax.set(xlim=(-2.6, 2.6), ylim=(-1.3, 1.3))
    ax.set_axis_off()
    return ax


PICTURES = (cut, measured, shrunk, reconciled, released, city, pairs)
"""What is drawn beside the gallery, each under the name of its function."""

PICTURE = re.compile(r"!\[([^\]]*)\]\((?:docs/)?pictures/([\w-]+)\.svg\)")


def alternatives() -> dict[str, str]:
    """Return the text alternative of every picture, from the page that shows it."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return {name: words for page in pages for words, name in PICTURE.findall(page.read_text(encoding="utf-8"))}


def gallery() -> None:
    """Run the code of docs/gallery.md, and save what each block drew under the name of the picture that follows it."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        Path("examples").symlink_to(ROOT / "examples")
        for code, picture in re.findall(r"```python\n(.*?)```(\n\n?!\[[^\n]*)?", text, re.DOTALL):
            exec(compile(code, "gallery.md", "exec"), names)
            for words, name in PICTURE.findall(picture):
                save(names["ax"], FOLDER / f"{name}.svg", words)


def main() -> None:
    """Draw all of them."""
    import matplotlib

    words = alternatives()
    FOLDER.mkdir(exist_ok=True)
    with matplotlib.rc_context({**STYLE, "path.simplify": False}):  # dots are lines of no length
        steps = Steps()
        for draw in PICTURES:
            save(draw(steps), FOLDER / f"{draw.__name__}.svg", words[draw.__name__])
    gallery()


if __name__ == "__main__":
    main()
