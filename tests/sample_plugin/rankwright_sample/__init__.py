"""A part of every kind that Rankwright takes from other packages."""

from rankwright_sample.models import OneFeature as OneFeature
