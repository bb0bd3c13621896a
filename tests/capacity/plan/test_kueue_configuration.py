"""Kueue's configuration: what it decides by, and that Kueue itself takes it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from capacity.plan.kueue_configuration import ONE_BOOT, PodsReady, kueue_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from lab.tools.build import Tools

FIELDS = {
    "namespace",
    "webhook",
    "leaderElection",
    "metrics",
    "health",
    "controller",
    "tls",
    "manageJobsWithoutQueueName",
    "managedJobsNamespaceSelector",
    "internalCertManagement",
    "waitForPodsReady",
    "clientConnection",
    "integrations",
    "multiKueue",
    "fairSharing",
    "admissionFairSharing",
    "resources",
    "featureGates",
    "objectRetentionPolicies",
    "visibilityServer",
}
"""Those of config.kueue.x-k8s.io/v1beta2 in Kueue 0.19, which refuses any other."""


def test_it_is_of_the_served_version_and_has_only_its_fields() -> None:
    written = kueue_configuration(ONE_BOOT)

    assert (written.pop("apiVersion"), written.pop("kind")) == ("config.kueue.x-k8s.io/v1beta2", "Configuration")
    assert written.keys() <= FIELDS


def test_addresses_are_those_of_the_charts_services_and_one_replica_leads() -> None:
    written = kueue_configuration(ONE_BOOT)

    assert written["metrics"] == {"bindAddress": ":8443", "enableClusterQueueResources": True}
    assert written["webhook"] == {"port": 9443}
    assert written["health"] == {"healthProbeBindAddress": ":8081"}
    assert written["leaderElection"]["leaderElect"] is True


def test_jobs_and_jobsets_are_managed_in_teams_namespaces_and_services_are_not() -> None:
    written = kueue_configuration(ONE_BOOT)

    assert written["integrations"] == {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]}
    assert written["manageJobsWithoutQueueName"] is False
    assert written["managedJobsNamespaceSelector"] == {"matchExpressions": [{"key": "flexspot.dev/team", "operator": "Exists"}]}


def test_a_job_waits_for_slow_nodes_and_not_for_ever() -> None:
    # facts/apis.md A: unless told otherwise, Kueue 0.19 requeues after 30 minutes and endlessly.
    waits = kueue_configuration(PodsReady(timeout_seconds=2700, recovery_seconds=1800, requeues=10))["waitForPodsReady"]

    assert (waits["timeout"], waits["recoveryTimeout"], waits["blockAdmission"]) == ("2700s", "1800s", False)
    strategy = waits["requeuingStrategy"]
    assert strategy == {"timestamp": "Eviction", "backoffLimitCount": 10, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}


def test_weights_count() -> None:
    # facts/apis.md G11: without the stanza the weights of queues are inert.
    assert kueue_configuration(ONE_BOOT)["fairSharing"]["preemptionStrategies"] == ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]


def test_what_no_queue_counts_holds_no_pod_back() -> None:
    assert kueue_configuration(ONE_BOOT)["resources"] == {"quotaCheckStrategy": "IgnoreUndeclared"}


def test_a_teams_job_is_never_deleted_because_its_workload_was_given_up() -> None:
    assert kueue_configuration(ONE_BOOT)["objectRetentionPolicies"] == {"workloads": {"afterFinished": "168h"}}


def kueues_answer(tools: Tools, folder: Path, written: dict[str, Any]) -> str:
    """What Kueue says when it starts with a configuration: it reads that first, and ends because there is no kubeconfig."""
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump(written))
    command = [tools.binary("kueue"), f"--config={path}", f"--kubeconfig={folder / 'none'}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    return ended.stdout + ended.stderr


@pytest.mark.lab
@pytest.mark.parametrize(
    "frameworks",
    [
        pytest.param(None, id="default"),
        pytest.param(
            ["batch/job", "pod", "deployment", "statefulset"],
            id="more kinds",
            marks=pytest.mark.nightly(held_by="test_kueue_itself_accepts_it"),
        ),
    ],
)
def test_kueue_itself_accepts_it(frameworks: list[str] | None, tools: Tools, tmp_path: Path) -> None:
    written = kueue_configuration(ONE_BOOT, *([frameworks] if frameworks else []))

    told = kueues_answer(tools, tmp_path, written)

    assert "Unable to" not in told
    assert "Configuration loaded" in told
    assert "unable to get kubeconfig" in told, "it went on to look for a cluster"


@pytest.mark.lab
@pytest.mark.nightly(held_by="test_kueue_itself_accepts_it, test_it_is_of_the_served_version_and_has_only_its_fields")
@pytest.mark.parametrize(
    "section,field,problem",
    [
        ("waitForPodsReady", "enable", 'unknown field \\"waitForPodsReady.enable\\"'),
        ("fairSharing", "enable", 'unknown field \\"fairSharing.enable\\"'),
        ("integrations", "podOptions", 'unknown field \\"integrations.podOptions\\"'),
    ],
)
def test_kueue_itself_refuses_fields_of_earlier_versions(section: str, field: str, problem: str, tools: Tools, tmp_path: Path) -> None:
    written = kueue_configuration(ONE_BOOT)
    written[section] |= {field: True}

    assert problem in kueues_answer(tools, tmp_path, written)


@pytest.mark.lab
@pytest.mark.nightly(held_by="test_kueue_itself_accepts_it, test_what_no_queue_counts_holds_no_pod_back")
def test_kueue_itself_refuses_excluded_prefixes_beside_what_is_ignored_anyway(tools: Tools, tmp_path: Path) -> None:
    written = kueue_configuration(ONE_BOOT)
    written["resources"] |= {"excludeResourcePrefixes": ["vpc.amazonaws.com/"]}

    assert "excludeResourcePrefixes is not allowed" in kueues_answer(tools, tmp_path, written)
