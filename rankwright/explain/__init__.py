"""Why a ranking is as it is."""
