"""Inner problems solved once per query, as pure kernels."""
