"""Benchmarks against peers in the same run: a file per area, floors that fail the run, a page."""
