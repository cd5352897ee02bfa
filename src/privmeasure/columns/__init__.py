"""Wide tables as a tree of columns: released columns and pairs, and what follows from them. Public values only."""
