"""The little language of `never` and `where`, and the sets of values that it stands for."""
