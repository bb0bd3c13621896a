"""JobSet's own controller with its webhooks over a lab, for as long as somebody asks."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import yaml

from lab.certificates import ensure_certificates
from lab.cluster import Cluster, read_objects, wait_until_established
from lab.part import Part
from lab.parts.added import brought_up
from lab.ports import HOST
from lab.processes import GRACE_SECONDS, end
from lab.tools.build import family_named

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from lab.cluster import KubeObject
    from lab.home import LabHome
    from lab.tools.build import Tools

JOBSET = "jobset"
PORTS = ("jobset-webhook", "jobset-health", "jobset-metrics")
"""The names of the ports that it listens on."""

JOB_SETS = "jobset.x-k8s.io/v1alpha2/JobSet"

_IS_OF_A_SET = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
"""Which pods its webhooks look at: charts/jobset of 0.12.0, templates/webhook/manifests.yaml."""


@contextmanager
def job_sets(home: LabHome, tools: Tools) -> Generator[Cluster]:
    """The API server of a running lab with JobSets that run. Their kind and all of them are gone afterwards.

    Raises LabError when the controller does not become ready.
    """
    cluster = Cluster(home.kubeconfig)
    definitions = read_objects(*tools.assets(JOBSET, "crds"))
    cluster.apply(*(_without_status(each) for each in definitions))
    wait_until_established(cluster, [each["metadata"]["name"] for each in definitions])
    running, ports = brought_up(home, PORTS, lambda chosen: [controller(home, tools, chosen)])
    webhooks = [_on_loopback(each, ports, home) for each in read_objects(*tools.assets(JOBSET, "webhooks"))]
    try:
        cluster.apply(*webhooks)
        yield cluster
    finally:
        for each in (*webhooks, *definitions):
            cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])
        end(running, GRACE_SECONDS)


def controller(home: LabHome, tools: Tools, ports: dict[str, int]) -> Part:
    """The controller outside a cluster, with the lab's certificates in the place of its own."""
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
        },
        command=[
            str(tools.binary(JOBSET)),
            f"--config={settings / 'configuration.yaml'}",
            f"--kubeconfig={home.kubeconfig}",
            "--zap-log-level=2",
        ],
    )


def _configuration(ports: dict[str, int], certificates: Path) -> dict[str, Any]:
    """Its own defaults, but for addresses and certificates."""
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
    """The webhook configuration under its released name, reached by URL."""
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
