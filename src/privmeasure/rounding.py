"""Numbers that keep floats harmless: room for rounding, and divisors that are never 0. None of them was tuned."""

ROUNDING = 1e-9
"""Relative room for the rounding of sums and products of many doubles, each of which is wrong by about 1e-16.

So far two totals may differ that should be equal, a matrix may be from a metric, and a number above the whole one that
it stands for.
"""
LAST_DIGITS = 1e-12
"""Relative room for a few roundings in a row: what a logarithm or a quotient may be wrong by, and more."""
TINY = 1e-300
"""The least divisor: 0 over it is 0 and no warning, while anything that matters is far above. It is a normal double, as
is one over it."""
