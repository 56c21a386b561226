"""Ranking data: the container, and readers and writers of every common form."""
