"""What a server counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from rankwright.serve.library import Library, Slot

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Measures:
    """Counters of one server; labels are names the operator gave, never a client's."""

    def __init__(self, library: Library) -> None:
        own = self._registry = CollectorRegistry()
        self.requests = Counter(
            "rankwright_requests", "Requests.", ["route", "status"], registry=own
        )
        self.seconds = Histogram(
            "rankwright_request_seconds",
            "Time from a request to its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=own,
        )
        self.under_way = Gauge(
            "rankwright_requests_under_way", "Requests not yet answered.", registry=own
        )
        which = ["model", "version"]
        self.queries = Counter("rankwright_queries", "Queries scored.", which, registry=own)
        self.documents = Counter("rankwright_documents", "Documents scored.", which, registry=own)
        self.reloads = Counter(
            "rankwright_reloads", "Replaced model files.", [*which, "outcome"], registry=own
        )
        self.sound = Gauge(
            "rankwright_model_file_is_sound",
            "1 while the file holds the model that is served, 0 after a bad replacement.",
            which,
            registry=own,
        )
        for slot in library.slots:
            self.sound.labels(slot.version.name, slot.version.version).set(1)

    def saw_reload(self, slot: Slot) -> None:
        """Count a replaced file."""
        own = slot.version
        outcome = "served" if slot.fault is None else "refused"
        self.reloads.labels(own.name, own.version, outcome).inc()
        self.sound.labels(own.name, own.version).set(slot.fault is None)

    def text(self) -> bytes:
        """Return all figures in Prometheus's format."""
        return generate_latest(self._registry)
