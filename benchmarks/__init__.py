"""Benchmarks against other tools: one file per area, lower limits in floors.toml."""
