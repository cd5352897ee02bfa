"""Exact integer noise from a real cipher."""
