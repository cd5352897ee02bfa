"""Noisy columns and pairs become rows of rank cells."""
