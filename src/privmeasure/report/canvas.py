"""Axes to draw on, and pictures as SVG: the one door to matplotlib. Public values, or whatever a caller draws.

Pictures are written into a page as they are: their texts stay texts, and the house's few colours become variables of
the page, so that they follow its light or dark mode. No picture has a script, an address or a date in it.
"""

import io
import re
import sys
import warnings
from typing import Any

import numpy as np

from privmeasure.errors import ArgumentError
from privmeasure.extras import how_to_install
from privmeasure.tables.variables import Variable, plain_number

INK, FAINT, BLUE, ORANGE, GREEN = "#1f2430", "#8b93a1", "#2f6fb5", "#c8641c", "#2d8a57"
"""Text and lines; grids; what was released; what it is compared with; what is guaranteed."""
VARIABLES = {INK: "--ink", FAINT: "--faint", BLUE: "--blue", ORANGE: "--orange", GREEN: "--green"}
"""What a page calls the colours."""
WIDTH, HEIGHT = 6.4, 2.4
"""Inches of a picture; a page scales it."""
NEEDS = f"Pictures need matplotlib, and pages jinja2: {how_to_install('report')}."

PYPLOT = "matplotlib.pyplot"

STYLE: Any = {
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "figure.facecolor": "white",  # in a notebook; a page takes its own ground
    "font.family": "sans-serif",
    "font.size": 9,
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "privmeasure",
    "text.color": INK,
    "text.parse_math": False,  # a name may hold dollars
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}


def check_pictures() -> None:
    """Say what is missing, before any work is done."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401 - looked for, not used
    except ModuleNotFoundError:
        raise ArgumentError(NEEDS) from None


def new_axes(*, width: float = WIDTH, height: float = HEIGHT) -> Any:
    """Return axes of a figure of their own, in the house style.

    Where there is a notebook, or pyplot was loaded, pyplot keeps the figure and shows it; elsewhere nobody does.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        if "IPython" in sys.modules or PYPLOT in sys.modules:
            from matplotlib import pyplot

            _, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
        else:
            axes = Figure(figsize=(width, height), layout="constrained").subplots()
        axes.tick_params(length=3)
        return axes


def forget(ax: Any) -> None:
    """Let pyplot forget the figure of some axes, if it keeps it: a page has many."""
    if PYPLOT in sys.modules:
        from matplotlib import pyplot

        pyplot.close(ax.figure)


def styled() -> Any:
    """Return the context in which things are drawn on axes, whoever made them: names are no formulas there."""
    import matplotlib

    return matplotlib.rc_context(STYLE)


def axes_for(ax: Any, *, width: float = WIDTH, height: float = HEIGHT) -> Any:
    """Return the axes that were given, or new ones that a notebook shows."""
    if ax is not None:
        return ax
    try:
        return new_axes(width=width, height=height)
    except ModuleNotFoundError:
        raise ArgumentError(NEEDS) from None


def date_axis(axis: Any) -> None:
    """Let an axis in days since 1970 show dates."""
    from matplotlib import dates as of_matplotlib

    dates: Any = of_matplotlib
    locator = dates.AutoDateLocator(minticks=3, maxticks=8)
    axis.set_major_locator(locator)
    axis.set_major_formatter(dates.ConciseDateFormatter(locator))


def ratio_axis(axis: Any) -> None:
    """Let an axis of ratios show a few numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    many = high > 1000 * max(low, 1e-300)
    axis.set_major_locator(LogLocator(subs=(1.0,) if many else (1.0, 3.0), numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(float(value))))
    axis.set_minor_formatter(NullFormatter())


def colour_map(colour: str = BLUE) -> Any:
    """Return one colour from nothing to full: on a light and on a dark page the ground shows through."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    red, green, blue = to_rgb(colour)
    return LinearSegmentedColormap.from_list("privmeasure", [(red, green, blue, 0.04), (red, green, blue, 1.0)])


def svg(ax: Any, *, name: str) -> str:
    """Return the figure of some axes as an SVG element for a page; `name` tells its parts from those of others."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that a font here has not may be in that of the reader
        if ax.get_aspect() != "auto":  # axes of a fixed shape are laid out by what the first try left them
            ax.figure.draw_without_rendering()
        ax.figure.savefig(buffer, format="svg", dpi=110, metadata={"Date": None, "Creator": None}, transparent=True)
    return _for_page(buffer.getvalue(), name)


def _for_page(text: str, name: str) -> str:
    """Return an SVG file as an element: no prolog, no metadata, names of its own, colours of the page.

    Examples:
        >>> _for_page('<?xml?><svg width="9pt" height="9pt"><g id="axes_1"/><path style="fill: #2f6fb5"/></svg>', "a")
        '<svg width="100%"><g/><path style="fill: var(--blue, #2f6fb5)"/></svg>'
    """
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text[text.index("<svg") :].strip(), flags=re.S)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 width="100%"', text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return re.sub(r"<[^>]*>", lambda tag: _tag(tag[0], name), re.sub(r"\n\s*", "\n", text))  # texts stay as they are


def _tag(tag: str, name: str) -> str:
    tag = re.sub(r' id="[a-zA-Z]+[\w.-]*_\d+"', "", tag)
    tag = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", tag)
    return re.sub(r"#[0-9a-f]{6}\b", lambda c: f"var({VARIABLES[c[0]]}, {c[0]})" if c[0] in VARIABLES else c[0], tag)


def label_axis(ax: Any, v: Variable, *, along: str = "x") -> None:
    """Say on an axis what it is, in the column's own units."""
    axis, unit = getattr(ax, f"{along}axis"), f" ({v.unit})" if v.unit else ""
    getattr(ax, f"set_{along}label")(short(v.name, 40 if along == "x" else 20) + unit)
    if v.scale == "date":
        date_axis(axis)
    elif v.scale == "log":
        getattr(ax, f"set_{along}scale")("log")
        ratio_axis(axis)
    elif v.scale == "number":
        axis.set_major_formatter(
            lambda value, _: plain_number(int(value) if v.step and value % 1 == 0 else float(value))
        )
    elif v.scale == "hour":
        axis.set_ticks(range(0, 25, 4), [f"{hour}:00" for hour in range(0, 25, 4)])
    elif v.scale == "uneven":
        low, high = v.bounds[0]
        ticks = np.arange(low, high + 1, max(1, round((high - low) / (6 if along == "x" else 4))))
        knots = [getattr(v.column, end) for end in ("low", "high")]
        knots[1:1] = getattr(v.column, "breaks", None) or []
        declared = len(knots) == round(high - low) + 1  # a whole number begins half a step before its break
        labels = [plain_number(float(knots[round(tick)])) if declared else v.show(tick) for tick in ticks]
        axis.set_ticks(ticks, [short(label, 12) for label in labels])


def percent(share: float) -> str:
    """Say a share.

    Examples:
        >>> percent(0.0123), percent(0.42), percent(0.999)
        ('1.2 %', '42 %', '100 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def short(text: str, most: int) -> str:
    """Return a text that fits beside a picture, on one line.

    Examples:
        >>> short("a long name", 6)
        'a lon…'
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split(" "))
    return line if len(line) <= most else line[: most - 1] + "…"
