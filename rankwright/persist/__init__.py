"""The model file: saved whole, checked on the way in, never pickled."""
