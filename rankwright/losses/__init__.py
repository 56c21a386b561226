"""Losses on scores: one file each, named as in the registry."""
