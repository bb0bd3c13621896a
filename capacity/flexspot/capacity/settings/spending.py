"""What may be spent, prices of one's own, and what is watched: what tells Prometheus of GPUs and their owners."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.catalog.platform import PrometheusKind
from flexspot.capacity.settings.teams import MonthlyUsd
from flexspot.capacity.values.names import LABEL_KEY, LABEL_VALUE


class OnUnknownPrices(StrEnum):
    """What happens to a preview or `up` when a budget holds for all known prices but unknown prices could exceed it.

    WARN reports it. REFUSE treats it as over budget.
    """

    WARN = "warn"
    REFUSE = "refuse"


class Budget(DescribedRecord):
    """The environment's budget."""

    monthly_usd: MonthlyUsd
    """Monthly budget in US dollars."""

    alert_percents: tuple[Annotated[int, Field(ge=1, le=200)], ...] = (50, 80, 100)
    """Percentages of the budget at which a warning is sent."""

    on_unknown_prices: OnUnknownPrices = OnUnknownPrices.WARN
    """What to do when this budget, or a team's, holds for all known prices but an unknown price (at most the on-demand price) could
    exceed it: `warn` in previews, or `refuse` them."""


class GpuQuota(DescribedRecord):
    """The cloud quota for one GPU type in the region."""

    preemptible: Annotated[int, Field(ge=0)] | None = None
    """GPUs for Spot, flex-start and queued capacity together. Default: not checked."""

    on_demand: Annotated[int, Field(ge=0)] | None = None
    """GPUs for on-demand capacity. Default: not checked."""


class Observability(DescribedRecord):
    """Metrics collection, and alert thresholds."""

    managed_prometheus: bool = True
    """Whether Google Cloud Managed Service for Prometheus is enabled on GKE."""

    idle_gpu_minutes: Annotated[int, Field(ge=5)] = 60
    """Minutes that an on-demand GPU may stay below 5 % utilisation before an alert fires."""

    queue_wait_minutes: Annotated[int, Field(ge=1)] = 60
    """Minutes that a job may wait before an alert fires."""

    min_spot_percent: Annotated[int, Field(ge=0, le=100)] = 40
    """Minimum percentage of running GPUs on Spot. An alert fires below it."""


LabelKey = Annotated[str, Field(pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE)]


class Measurement(DescribedRecord):
    """Metrics for reports and dashboards."""

    kube_state_metrics: bool = True
    """Whether to install kube-state-metrics with the labels that reports need. Set to false if the cluster already has one, which then
    needs the argument given in docs/guides/chargeback.md."""

    prometheus: PrometheusKind
    """Which Prometheus scrapes it and evaluates the recording rules."""

    monitor_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """With `operator`: the labels by which its Prometheus selects monitors and rules, such as `release: kube-prometheus-stack`. Default:
    none."""


class GkeMeasurement(Measurement):
    """Metrics on GKE, whose clusters have Google Cloud Managed Service for Prometheus."""

    prometheus: PrometheusKind = PrometheusKind.MANAGED
    """Which Prometheus scrapes kube-state-metrics and evaluates the recording rules. `managed`: Google's service. `operator`: the
    Prometheus Operator. `annotations`: any other Prometheus that discovers Services by prometheus.io/scrape."""


class EksMeasurement(Measurement):
    """Metrics on EKS. By default any Prometheus discovers the Services by their annotations."""

    dcgm_exporter: bool = True
    """Whether to run NVIDIA's DCGM exporter on GPU nodes. It reports GPU utilisation, which recording rules, reports and idle GPU alerts
    use. Set to false if the cluster already has one, such as the GPU operator's or the CloudWatch add-on's: only one exporter gets
    profiling metrics."""

    prometheus: Literal[PrometheusKind.OPERATOR, PrometheusKind.ANNOTATIONS] = PrometheusKind.ANNOTATIONS
    """Which Prometheus scrapes both exporters and evaluates the recording rules. `operator`: the Prometheus Operator. `annotations`: any
    other Prometheus that discovers Services by prometheus.io/scrape."""
