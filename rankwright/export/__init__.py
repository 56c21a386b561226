"""Models for other systems: one file per target, each export with a proof that scores agree."""
