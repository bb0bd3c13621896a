"""What the settings and the cluster's version make of the API server's rules."""

from __future__ import annotations

from typing import Any

import pytest
from plan_settings import eks, gke, local, plan_of, pool

from capacity.settings.teams import AdmissionMode


def planned(**admission: Any) -> tuple[AdmissionMode, bool]:
    plan = plan_of(local(pool("l4", "g6.xlarge", "spot", 4, "training"), admission=admission))
    return plan.admission.mode, plan.admission.owner_labels


def test_rules_are_enforced_and_labels_filled_in_where_nobody_says_otherwise() -> None:
    assert planned() == (AdmissionMode.ENFORCE, True)


@pytest.mark.parametrize("mode,labels", [("enforce", True), ("warn", True), ("none", False)])
def test_without_rules_no_labels_are_filled_in(mode: str, labels: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert planned(mode=mode, default_owner_labels=True) == (AdmissionMode(mode), labels)


def test_labels_can_be_left_alone() -> None:
    assert planned(default_owner_labels=False) == (AdmissionMode.ENFORCE, False)


@pytest.mark.parametrize("version,labels", [("1.35", False), ("1.36", True), ("1.37", True)])
def test_on_eks_the_version_says_whether_labels_can_be_filled_in(version: str, labels: bool) -> None:  # noqa: FBT001 -- a column of the table
    l4 = pool("l4", "g6.xlarge", "spot", 4, "training")

    cluster, karpenter = {"version": version, "ami": "al2023@v20261112"}, {"version": "1.15.0"}
    assert plan_of(eks(l4, cluster=cluster, controllers={"karpenter": karpenter})).admission.owner_labels == labels


@pytest.mark.parametrize("cluster", [{}, {"min_version": "1.36", "existing": "ours"}])
def test_on_gke_a_version_that_is_not_certain_fills_in_no_labels(cluster: dict[str, Any]) -> None:
    l4 = pool("l4", "g2-standard-8", "spot", 4, "training")

    assert not plan_of(gke(l4, cluster=cluster)).admission.owner_labels
