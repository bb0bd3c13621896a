"""Kueue's configuration: its decisions, and its acceptance by Kueue."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from flexspot.capacity.plan.kueue_configuration import ONE_BOOT, PodsReady, kueue_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.lab.tools.build import Tools


def test_addresses_match_the_charts_services_and_one_replica_leads() -> None:
    written = kueue_configuration(ONE_BOOT)

    assert written["metrics"] == {"bindAddress": ":8443", "enableClusterQueueResources": True}
    assert written["webhook"] == {"port": 9443}
    assert written["health"] == {"healthProbeBindAddress": ":8081"}
    assert written["leaderElection"]["leaderElect"] is True


def test_only_jobs_and_jobsets_in_teams_namespaces_are_managed() -> None:
    written = kueue_configuration(ONE_BOOT)

    assert written["integrations"] == {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]}
    assert written["manageJobsWithoutQueueName"] is False
    assert written["managedJobsNamespaceSelector"] == {"matchExpressions": [{"key": "flexspot.dev/team", "operator": "Exists"}]}


def test_a_job_waits_for_slow_nodes_but_not_forever() -> None:
    # facts/apis.md A: by default Kueue 0.19 requeues after 30 minutes and endlessly.
    waits = kueue_configuration(PodsReady(timeout_seconds=2700, recovery_seconds=1800, requeues=10))["waitForPodsReady"]

    assert (waits["timeout"], waits["recoveryTimeout"], waits["blockAdmission"]) == ("2700s", "1800s", False)
    strategy = waits["requeuingStrategy"]
    assert strategy == {"timestamp": "Eviction", "backoffLimitCount": 10, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}


def test_fair_sharing_uses_weights() -> None:
    # facts/apis.md G11: without the stanza the weights of queues are inert.
    assert kueue_configuration(ONE_BOOT)["fairSharing"]["preemptionStrategies"] == ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]


def test_resources_without_quota_do_not_block_pods() -> None:
    assert kueue_configuration(ONE_BOOT)["resources"] == {"quotaCheckStrategy": "IgnoreUndeclared"}


def test_deactivated_workloads_are_not_deleted() -> None:
    assert kueue_configuration(ONE_BOOT)["objectRetentionPolicies"] == {"workloads": {"afterFinished": "168h"}}


@pytest.mark.lab
def test_kueue_itself_accepts_it(tools: Tools, tmp_path: Path) -> None:
    """Kueue reads its configuration first, and exits because there is no kubeconfig."""
    written = kueue_configuration(ONE_BOOT)
    path = tmp_path / "configuration.yaml"
    path.write_text(yaml.safe_dump(written))
    command = [tools.binary("kueue"), f"--config={path}", f"--kubeconfig={tmp_path / 'none'}"]

    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    output = ended.stdout + ended.stderr
    assert ended.returncode == 1

    assert "Unable to" not in output
    assert "Configuration loaded" in output
    assert "unable to get kubeconfig" in output, "it went on to look for a cluster"
