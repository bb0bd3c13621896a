"""Kueue's configuration: what it decides by, and that Kueue itself takes it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from flexspot.capacity.plan.kueue_configuration import ONE_BOOT, PodsReady, kueue_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.lab.tools.build import Tools


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


@pytest.mark.lab
def test_kueue_itself_accepts_it(tools: Tools, tmp_path: Path) -> None:
    """It reads its configuration first, and ends because there is no kubeconfig."""
    written = kueue_configuration(ONE_BOOT)
    path = tmp_path / "configuration.yaml"
    path.write_text(yaml.safe_dump(written))
    command = [tools.binary("kueue"), f"--config={path}", f"--kubeconfig={tmp_path / 'none'}"]

    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    told = ended.stdout + ended.stderr
    assert ended.returncode == 1

    assert "Unable to" not in told
    assert "Configuration loaded" in told
    assert "unable to get kubeconfig" in told, "it went on to look for a cluster"
