"""Services as `flexspot render` creates them, on the program's own namespaces and queues: admitted, started, put to sleep.

Nodes and pods are fake; the API server, its access rules, the controllers and Kueue are real.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING
from urllib.error import HTTPError

import pytest
from service_fixtures import PEOPLE, declared, pod_environment, replicas, service_platform, wait_for_ready

from flexspot.capacity.workloads import notebook_stop
from flexspot.capacity.workloads.notebook import scale_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster
    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

pytestmark = pytest.mark.lab

_FORBIDDEN = 403


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    with service_platform(cluster, register, homes=1) as deployed:
        yield deployed


def test_a_standing_notebook_is_started_by_its_people_and_stopped_by_its_watch_and_neither_may_do_more(
    platform: QueuePlatform, lab: LabControlPlane, tools: Tools, tmp_path: Path
) -> None:
    namespace = platform.own("alpha")
    declared(platform, "notebook", "desk", workload_class="inference", home_gib=1)
    assert (replicas(platform, "desk"), wait_for_ready(platform, "desk", 0)) == (0, [])

    started = as_people(tools, lab, namespace, "scale", "deployment", "desk", "--replicas=1")

    assert "deployment.apps/desk scaled" in started
    wait_for_ready(platform, "desk", 1)
    environment = {
        **pod_environment(platform.cluster, namespace, "workloads", tmp_path),
        notebook_stop.SCALE_VARIABLE: scale_path(namespace, "desk"),
        notebook_stop.CREDENTIALS_VARIABLE: str(tmp_path),
    }
    notebook_stop.stop(environment)
    wait_for_ready(platform, "desk", 0)
    assert replicas(platform, "desk") == 0
    with pytest.raises(HTTPError) as refused:
        notebook_stop.stop({**environment, notebook_stop.SCALE_VARIABLE: scale_path(namespace, "other")})
    assert refused.value.code == _FORBIDDEN
    refused.value.close()
    assert "Forbidden" in as_people(tools, lab, namespace, "delete", "deployment", "desk")


def test_a_session_is_started_from_its_pattern_admitted_by_the_queue_and_complete_when_its_server_ends(
    platform: QueuePlatform, lab: LabControlPlane, tools: Tools
) -> None:
    namespace = platform.own("alpha")
    declared(platform, "notebook", "desk", workload_class="interactive", home_gib=1)

    started = as_people(tools, lab, namespace, "create", "job", "desk", "--from=cronjob/desk")

    assert "job.batch/desk created" in started
    platform.wait_for_running("alpha", "desk")
    assert "already exists" in as_people(tools, lab, namespace, "create", "job", "desk", "--from=cronjob/desk")
    assert platform.wait_for_flavors("alpha", "desk") == {platform.own("l4-spot")}
    platform.finish("alpha", "desk")


def as_people(tools: Tools, lab: LabControlPlane, namespace: str, *command: str) -> str:
    """Return the output of kubectl for a member of the team's group. kubectl stores its discovery in its home."""
    called = [tools.binary("kubectl"), f"--kubeconfig={lab.home.kubeconfig}", "-n", namespace, "--as=ann", f"--as-group={PEOPLE}", *command]
    home = {"PATH": os.environ["PATH"], "HOME": str(lab.home.kubeconfig.parent)}
    printed = subprocess.run(called, capture_output=True, text=True, check=False, env=home)
    return printed.stdout + printed.stderr
