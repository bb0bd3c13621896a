"""Which Prometheus gathers the series, as far as objects depend on it."""

from __future__ import annotations

from enum import StrEnum

MEASUREMENT_NAMESPACE = "flexspot-measurement"
"""Where what measures runs. Not kube-system, into which Autopilot lets nobody."""


class PrometheusKind(StrEnum):
    """Who reads what is to be scraped and recorded.

    MANAGED: Google's managed service, from objects of monitoring.googleapis.com. OPERATOR: the Prometheus operator, from objects of
    monitoring.coreos.com. ANNOTATIONS: a Prometheus that finds Services by the annotation prometheus.io/scrape, and takes rules as a file.
    """

    MANAGED = "managed"
    OPERATOR = "operator"
    ANNOTATIONS = "annotations"
