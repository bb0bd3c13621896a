"""What tells Prometheus of GPUs and their owners, and what Prometheus records of it."""

# A record is frozen, so what narrows a field of its parent is safe; the checker does not know that of pydantic's models.
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity.measurement.prometheus_kind import PrometheusKind
from capacity.names import LABEL_KEY, LABEL_VALUE
from capacity.records import Record

LabelKey = Annotated[str, Field(pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE)]


class Measurement(Record):
    """Measurement for reports and dashboards.

    `kube_state_metrics` says whether one is installed, with the labels that reports need; false where the cluster has its own, which then
    needs the argument that docs/guides/chargeback.md names. `prometheus` is who scrapes it and evaluates the recording rules.
    `monitor_labels` are those by which the Prometheus operator's Prometheus selects its ServiceMonitors and rules, such as
    `release: kube-prometheus-stack`; default: none.
    """

    kube_state_metrics: bool = True
    prometheus: PrometheusKind
    monitor_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)


class GkeMeasurement(Measurement):
    """Measurement on GKE, whose clusters have Google's managed service for Prometheus."""

    prometheus: PrometheusKind = PrometheusKind.MANAGED


class EksMeasurement(Measurement):
    """Measurement on EKS. By default Prometheus, whichever it is, finds the Service by its annotations."""

    prometheus: Literal[PrometheusKind.OPERATOR, PrometheusKind.ANNOTATIONS] = PrometheusKind.ANNOTATIONS
