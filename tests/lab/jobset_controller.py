"""JobSet's own controller with its webhooks for a running lab. Not a test."""

from __future__ import annotations

import base64
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import yaml
from lab_monitoring import brought_up

from flexspot.lab.certificates import ensure_certificates
from flexspot.lab.cluster import Cluster, read_objects, released_roles, wait_until_established
from flexspot.lab.parts import Part, acting_as
from flexspot.lab.ports import HOST
from flexspot.lab.processes import GRACE_SECONDS, POLL_SECONDS, end
from flexspot.lab.progress import LabError
from flexspot.lab.tools.build import family_named

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.home import LabHome
    from flexspot.lab.tools.build import Tools

JOBSET = "jobset"
NAMESPACE = "jobset-system"
PORTS = ("jobset-webhook", "jobset-health", "jobset-metrics")
"""Names of the ports that it listens on."""

JOB_SETS = "jobset.x-k8s.io/v1alpha2/JobSet"

_KUEUE_SECONDS = 150
"""Two minutes between Kueue's checks, and time to start."""

_IS_OF_A_SET = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
"""Selector of the pods for its webhooks: charts/jobset of 0.12.0, templates/webhook/manifests.yaml."""


@contextmanager
def job_sets(home: LabHome, tools: Tools) -> Generator[Cluster]:
    """Yield the API server of a running lab with JobSets that run. Their kind and all of them are deleted afterwards.

    Raises LabError when the controller does not become ready, or Kueue does not start to manage them.
    """
    cluster = Cluster(home.kubeconfig)
    definitions = read_objects(*tools.assets(JOBSET, "crds"))
    cluster.apply(*(_without_status(each) for each in definitions))
    wait_until_established(cluster, [each["metadata"]["name"] for each in definitions])
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.apply(namespace, *released_roles(tools.assets(JOBSET, "roles"), NAMESPACE, "jobset-"))
    running, ports = brought_up(home, PORTS, lambda chosen: [controller(home, tools, chosen)])
    webhooks = [_on_loopback(each, ports, home) for each in read_objects(*tools.assets(JOBSET, "webhooks"))]
    try:
        cluster.apply(*webhooks)
        _wait_for_kueue(home)
        yield cluster
    finally:
        for each in (*webhooks, *definitions):
            cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])
        end(running, GRACE_SECONDS)


def _wait_for_kueue(home: LabHome) -> None:
    """Return once Kueue manages JobSets. Until then it treats the Jobs of a set as separate ones.

    Kueue checks for a kind that was missing at its start after one second, then after two, and so on up to two minutes (0.19.0,
    pkg/controller/jobframework/setup.go). It reports the result only in its log. A lab that has run for long needs that time, too.
    """
    deadline = time.monotonic() + _KUEUE_SECONDS
    while not _is_looked_at(home.log("kueue").read_text(encoding="utf-8", errors="replace")):
        if time.monotonic() > deadline:
            remedy = f"look at {home.log('kueue')}, and stop and start the lab: a Kueue that starts anew sees the kind at once."
            raise LabError(f"Kueue did not begin to look at JobSets within {_KUEUE_SECONDS} s.", remedy)
        time.sleep(POLL_SECONDS)


def _is_looked_at(log: str) -> bool:
    """Return whether Kueue found the kind when it started, which it does not log, or has found it since."""
    lines = [line for line in log.splitlines() if "jobset.x-k8s.io" in line]
    return not any("deferring setting up controller" in line for line in lines) or any("API now available" in line for line in lines)


def controller(home: LabHome, tools: Tools, ports: dict[str, int]) -> Part:
    """Return the controller outside a cluster, with the lab's certificates instead of its own."""
    settings, certificates = home.settings(JOBSET), home.settings(JOBSET) / "certificates"
    lab = ensure_certificates(home.certificates)
    return Part(
        name=JOBSET,
        version=family_named(JOBSET).version,
        ports=PORTS,
        probe=f"http://{HOST}:{ports['jobset-health']}/readyz",
        files={
            settings / "configuration.yaml": yaml.safe_dump(_configuration(ports, certificates), sort_keys=False),
            certificates / "tls.crt": lab.certificate("server").read_text(),
            certificates / "tls.key": lab.key("server").read_text(),
            settings / "kubeconfig": acting_as(home.kubeconfig.read_text(), NAMESPACE, "jobset-controller-manager"),
        },
        command=[
            str(tools.binary(JOBSET)),
            f"--config={settings / 'configuration.yaml'}",
            f"--kubeconfig={settings / 'kubeconfig'}",
            "--zap-log-level=2",
        ],
    )


def _configuration(ports: dict[str, int], certificates: Path) -> dict[str, Any]:
    """Return its own defaults, with other addresses and certificates."""
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": HOST, "port": ports["jobset-webhook"], "certDir": str(certificates)},
        "metrics": {"bindAddress": f"{HOST}:{ports['jobset-metrics']}", "certDir": str(certificates)},
        "health": {"healthProbeBindAddress": f"{HOST}:{ports['jobset-health']}"},
    }


def _without_status(definition: KubeObject) -> KubeObject:
    return {name: value for name, value in definition.items() if name != "status"}


def _on_loopback(written: KubeObject, ports: dict[str, int], home: LabHome) -> KubeObject:
    """Return the webhook configuration under its released name, reached by URL."""
    authority = base64.b64encode(ensure_certificates(home.certificates).certificate("ca").read_bytes()).decode()
    webhooks = [
        {
            **each,
            "clientConfig": {
                "url": f"https://{HOST}:{ports['jobset-webhook']}{each['clientConfig']['service']['path']}",
                "caBundle": authority,
            },
            **({"objectSelector": _IS_OF_A_SET} if each["name"].endswith("pod.kb.io") else {}),
        }
        for each in written["webhooks"]
    ]
    return {**written, "metadata": {"name": f"{JOBSET}-{written['metadata']['name']}"}, "webhooks": webhooks}
