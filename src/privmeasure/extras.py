"""The libraries of every extra, for errors that say what to install: privmeasure itself is on no package index."""

LIBRARIES = {
    "app": ("jinja2", "matplotlib"),
    "duckdb": ("duckdb",),
    "fast": ("numba",),
    "plot": ("matplotlib",),
    "postgres": ("psycopg[binary]",),
    "report": ("jinja2", "matplotlib"),
    "spark": ("pyspark[sql]",),
    "transport": ("ortools",),
    "xlsx": ("openpyxl",),
}
"""The libraries of each extra, as pip names them; pyproject.toml has the same with the oldest versions that work."""


def how_to_install(extra: str) -> str:
    """Return the command that installs the libraries of an extra, and the name of the extra, as the end of a sentence.

    Examples:
        >>> how_to_install("report")
        '`pip install jinja2 matplotlib` (the extra "report")'
        >>> how_to_install("spark")
        '`pip install "pyspark[sql]"` (the extra "spark")'
    """
    quoted = (f'"{library}"' if "[" in library else library for library in LIBRARIES[extra])
    return f'`pip install {" ".join(quoted)}` (the extra "{extra}")'
