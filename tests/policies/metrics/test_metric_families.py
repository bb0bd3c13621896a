"""The data about metrics: well-formed, and saying of each what rules ask."""

from __future__ import annotations

import re

from policies.metrics.label_use import HISTOGRAM_SERIES, absent_labels, amounts_by_container, histograms

NAME = re.compile(r"[a-z_:][a-z0-9_:]*")


def test_names_are_those_of_families_and_not_of_their_series() -> None:
    names = histograms() | amounts_by_container()

    assert [name for name in names if not NAME.fullmatch(name) or name.endswith(HISTOGRAM_SERIES)] == []
    assert "kueue_admission_wait_time_seconds" in names
    assert "karpenter_nodes_termination_duration_seconds" not in names, "a summary has series of its own name"


def test_a_label_is_absent_from_the_series_of_its_exporter_alone() -> None:
    def missing(series: str, label: str) -> bool:
        return any(each.covers(series, label) for each in absent_labels())

    assert missing("DCGM_FI_DEV_GPU_UTIL", "node")
    assert missing("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "namespace")
    assert missing("kube_node_labels", "label_karpenter_sh_capacity_type")
    assert not missing("DCGM_FI_DEV_GPU_UTIL", "Hostname")
    assert not missing("kube_node_labels", "node")
    assert not missing("kube_pod_info", "node")


def test_each_says_what_to_do_instead() -> None:
    assert min(len(each.instead) for each in absent_labels()) > 40
