"""What may be spent, prices of one's own, and what is watched: what tells Prometheus of GPUs and their owners."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from capacity.catalog.data_files import DescribedRecord
from capacity.catalog.platform import PrometheusKind
from capacity.settings.teams import MonthlyUsd
from capacity.values.names import LABEL_KEY, LABEL_VALUE


class OnUnknownPrices(StrEnum):
    """What becomes of a preview or `up` whose budget is kept as far as prices are known, and may be exceeded by those that are not.

    WARN tells of it. REFUSE holds it as one above its budget.
    """

    WARN = "warn"
    REFUSE = "refuse"


class Budget(DescribedRecord):
    """The environment's budget."""

    monthly_usd: MonthlyUsd
    """US dollars a month."""

    alert_percents: tuple[Annotated[int, Field(ge=1, le=200)], ...] = (50, 80, 100)
    """The percentages of it at which a warning is sent."""

    on_unknown_prices: OnUnknownPrices = OnUnknownPrices.WARN
    """Where this budget, or a team's, is kept as far as prices are known, and may be exceeded by one that is not, at on-demand at most:
    `warn` of it in previews, or `refuse` them."""


class GpuQuota(DescribedRecord):
    """What the cloud grants of one GPU in the region."""

    preemptible: Annotated[int, Field(ge=0)] | None = None
    """GPUs for Spot, flex-start and queued capacity together; default: not checked."""

    on_demand: Annotated[int, Field(ge=0)] | None = None
    """GPUs for on-demand capacity; default: not checked."""


class Observability(DescribedRecord):
    """What is measured, and the thresholds at which alerts fire."""

    managed_prometheus: bool = True
    """Whether GKE's managed service for Prometheus is on."""

    idle_gpu_minutes: Annotated[int, Field(ge=5)] = 60
    """Minutes that an on-demand GPU may be below 5 % busy before an alert fires."""

    queue_wait_minutes: Annotated[int, Field(ge=1)] = 60
    """Minutes that a job may wait before an alert fires."""

    min_spot_percent: Annotated[int, Field(ge=0, le=100)] = 40
    """The least percentage of running GPUs that are on Spot; below it an alert fires."""


LabelKey = Annotated[str, Field(pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE)]


class Measurement(DescribedRecord):
    """Measurement for reports and dashboards."""

    kube_state_metrics: bool = True
    """Whether kube-state-metrics is installed with the labels that reports need; false where the cluster has its own, which then needs the
    argument that docs/guides/chargeback.md names."""

    prometheus: PrometheusKind
    """Who scrapes it and evaluates the recording rules."""

    monitor_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """With `operator`: the labels by which its Prometheus selects monitors and rules, such as `release: kube-prometheus-stack`."""


class GkeMeasurement(Measurement):
    """Measurement on GKE, whose clusters have Google's managed service for Prometheus."""

    prometheus: PrometheusKind = PrometheusKind.MANAGED
    """Who scrapes kube-state-metrics and evaluates the recording rules: `managed`, Google's service; `operator`, the Prometheus operator;
    `annotations`, any other that looks for prometheus.io/scrape on Services."""


class EksMeasurement(Measurement):
    """Measurement on EKS. By default Prometheus, whichever it is, finds Services by their annotations."""

    dcgm_exporter: bool = True
    """Whether NVIDIA's DCGM exporter runs on GPU nodes and tells how busy GPUs are, which recording rules, reports and alerts of idle GPUs
    read; false where the cluster has one, such as the GPU operator's or that of CloudWatch's add-on: one alone gets profiling series."""

    prometheus: Literal[PrometheusKind.OPERATOR, PrometheusKind.ANNOTATIONS] = PrometheusKind.ANNOTATIONS
    """Who scrapes both exporters and evaluates the recording rules: `operator`, the Prometheus operator; `annotations`, any other that
    looks for prometheus.io/scrape on Services."""
