"""Peers of the default for `make bench-peers`: rivals that have no package, written from their papers.

Every rival is a function of points of the unit cube, epsilon, the relation of neighbours and a generator of random
numbers, and returns masses on cells. Their noise is that of floating-point numbers: enough to measure accuracy, never
to publish anything. All are given what helps them: the true number of rows wherever they choose a depth, also where
rows are private (ours buys it), and the best way that we know from noisy counts to a measure.
"""
