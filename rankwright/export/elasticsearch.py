"""``elasticsearch``: feature set and model for the LTR plugin of Elasticsearch."""

from __future__ import annotations

from rankwright.export.ltr_plugin import LtrPlugin


class Elasticsearch(LtrPlugin):
    """Upload payloads for Elasticsearch's LTR plugin, with the feature set."""

    engine = "Elasticsearch"
