"""``opensearch``: feature set and model for the LTR plugin of OpenSearch."""

from __future__ import annotations

from rankwright.export.ltr_plugin import LtrPlugin


class OpenSearch(LtrPlugin):
    """Upload payloads for OpenSearch's LTR plugin, with the feature set."""

    engine = "OpenSearch"
