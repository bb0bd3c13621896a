"""Measurement: whether what is to be scraped and recorded is read by anybody."""

from __future__ import annotations

import pytest
from resolved_fixtures import told

from capacity.plan.checks.shares import managed_prometheus_is_on, monitor_labels_are_read


def test_googles_service_is_not_asked_to_scrape_where_it_is_off() -> None:
    off = {"observability.managed_prometheus": False}

    assert told(managed_prometheus_is_on, "gke", off) == ["refused: prometheus-not-managed at measurement.prometheus"]
    assert told(managed_prometheus_is_on, "gke", off | {"measurement.prometheus": "operator"}) == []
    assert told(managed_prometheus_is_on, "gke", {}) == []
    assert told(managed_prometheus_is_on, "eks", off) == [], "it is not there anyway"


@pytest.mark.parametrize("cloud,kind", [("gke", "managed"), ("gke", "annotations"), ("eks", "annotations")])
def test_labels_of_monitors_are_for_the_prometheus_operator(cloud: str, kind: str) -> None:
    labelled = {"measurement": {"prometheus": kind, "monitor_labels": {"release": "prometheus"}}}

    assert told(monitor_labels_are_read, cloud, labelled) == ["refused: monitor-labels-not-read at measurement.monitor_labels"]
    assert told(monitor_labels_are_read, cloud, labelled | {"measurement.prometheus": "operator"}) == []
    assert told(monitor_labels_are_read, "local", {}) == []
