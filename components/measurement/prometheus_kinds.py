"""The objects of each kind of Prometheus."""

from __future__ import annotations

from capacity.catalog.platform import PrometheusKind

GOOGLE_API = "monitoring.googleapis.com/v1"
"""GoogleCloudPlatform/prometheus-engine, pkg/operator/apis/monitoring/v1; GKE brings the definitions with managed collection."""

OPERATOR_API = "monitoring.coreos.com/v1"
"""https://prometheus-operator.dev/docs/api-reference/api; the operator brings the definitions."""


def checked_kind(where: str, written: str) -> PrometheusKind:
    """The kind that is meant. Raises ValueError, beginning with `where`, for another word."""
    try:
        return PrometheusKind(written)
    except ValueError as error:
        allowed = ", ".join(PrometheusKind)
        raise ValueError(f"{where}: prometheus is {written}; it is {allowed}; use one of these") from error
