"""Kinds of columns: all that is known of a kind is in its file."""
