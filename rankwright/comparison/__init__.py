"""Compare rankers, cross-validate and tune them; the cache of fits; the demo."""
