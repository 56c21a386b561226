"""Solvers: each minimises a problem and knows nothing of queries or features."""
