"""Measures of a ranking, one per file, under conventions that have names."""
