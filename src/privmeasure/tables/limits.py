"""Limits on schemas, which may come from strangers: each is ten times or more what a table of people needs.

They bound the time and the memory that reading takes: at most 2 seconds and 500 MB. What they bound is public.
"""

MAX_SCHEMA_BYTES = 1_000_000
"""The largest schema file."""
MAX_LOOKUP_BYTES = 16_000_000
"""The largest CSV file of a lookup."""
MAX_COLUMNS = 10_000
"""The most columns of a schema."""
MAX_RULES = 10_000
"""The most rules (`never`) of a schema."""
MAX_KEY_PARTS = 64
"""The most parts of a dotted key in a schema file, such as columns.age.low."""
MAX_PROBLEMS = 100
"""The most problems of one kind that are looked for in a schema."""
MAX_HINT_LENGTH = 100
"""The longest name for which the nearest known name is looked for."""
MAX_HINT_NAMES = 1_000
"""The most known names that are compared with an unknown one."""


def size_problem(columns: int, rules: int) -> str:
    """Return what is wrong with the size of a schema, by its columns and its rules; nothing if it is within the limits.

    Examples:
        >>> size_problem(10_001, 0)
        'the schema has 10,001 columns; a schema has at most 10,000. Release the table in parts.'
    """
    if columns > MAX_COLUMNS:
        return f"the schema has {columns:,} columns; a schema has at most {MAX_COLUMNS:,}. Release the table in parts."
    if rules > MAX_RULES:
        return f"never has {rules:,} rules; a schema has at most {MAX_RULES:,}. Join rules, with `in` or `<`."
    return ""
