"""What may be spent, prices of one's own, and what is watched: what tells Prometheus of GPUs and their owners."""

# A record is frozen, so what narrows a field of its parent is safe; the checker does not know that of pydantic's models.
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity.catalog.data_files import Record
from capacity.catalog.platform import PrometheusKind
from capacity.settings.teams import MonthlyUsd
from capacity.values.names import LABEL_KEY, LABEL_VALUE


class Budget(Record):
    """The environment's budget in US dollars a month. `alert_percents` are the parts of it at which somebody is told."""

    monthly_usd: MonthlyUsd
    alert_percents: tuple[Annotated[int, Field(ge=1, le=200)], ...] = (50, 80, 100)


class GpuQuota(Record):
    """What the cloud grants of one GPU in the region, in GPUs. `preemptible` is used by Spot, flex-start and queued capacity together."""

    preemptible: Annotated[int, Field(ge=0)] | None = None
    on_demand: Annotated[int, Field(ge=0)] | None = None


class Observability(Record):
    """What is measured, and from when on somebody is told.

    `idle_gpu_minutes`: an on-demand GPU below 5 % for so long. `queue_wait_minutes`: jobs waiting longer. `min_spot_percent`: Spot is less
    of the running GPUs.
    """

    managed_prometheus: bool = True
    idle_gpu_minutes: Annotated[int, Field(ge=5)] = 60
    queue_wait_minutes: Annotated[int, Field(ge=1)] = 60
    min_spot_percent: Annotated[int, Field(ge=0, le=100)] = 40


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
