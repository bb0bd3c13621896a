"""Measurement: whether what is to be scraped and recorded is read by anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.measurement.prometheus_kind import PrometheusKind
from capacity.settings.platform import EksSettings, GkeSettings
from capacity.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground


def managed_prometheus_is_on(ground: Ground) -> Iterator[SettingsProblem]:
    """Google's objects are read by Google's service alone."""
    settings = ground.settings
    if not isinstance(settings, GkeSettings) or settings.observability.managed_prometheus:
        return
    if settings.measurement.prometheus is PrometheusKind.MANAGED:
        problem = "is not there with observability.managed_prometheus false"
        remedy = f"name another Prometheus: {PrometheusKind.OPERATOR} or {PrometheusKind.ANNOTATIONS}"
        yield SettingsProblem("measurement.prometheus", PrometheusKind.MANAGED, problem, remedy, "prometheus-not-managed")


def monitor_labels_are_read(ground: Ground) -> Iterator[SettingsProblem]:
    """Labels select objects of the Prometheus operator."""
    settings = ground.settings
    if not isinstance(settings, GkeSettings | EksSettings):
        return
    wanted = settings.measurement
    if wanted.monitor_labels and wanted.prometheus is not PrometheusKind.OPERATOR:
        problem = f"select nothing with prometheus {wanted.prometheus}"
        remedy = f"leave them out, or set prometheus to {PrometheusKind.OPERATOR}"
        yield SettingsProblem("measurement.monitor_labels", str(wanted.monitor_labels), problem, remedy, "monitor-labels-not-read")


CHECKS = (managed_prometheus_is_on, monitor_labels_are_read)
