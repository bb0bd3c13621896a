"""Stand-ins for the programs that a kubeconfig names: gke-gcloud-auth-plugin and `aws eks get-token`.

They return the credentials of the control plane behind the cloud's cluster, and none for another cluster. The real ones return a token; a
client certificate goes the same way (ExecCredential of client.authentication.k8s.io).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from cloud_folder import HOME_VARIABLE, CloudFolder, Event
from cloud_refusals import EKS_CLUSTER, GKE_CLUSTER


def gke_plugin(arguments: list[str]) -> None:
    """gke-gcloud-auth-plugin takes no arguments. It reads the cluster from the environment."""
    cloud = _cloud()
    info: dict[str, Any] = json.loads(os.environ.get("KUBERNETES_EXEC_INFO") or "{}")
    cluster: dict[str, Any] = info.get("spec", {}).get("cluster") or {}
    server = str(cluster.get("server", ""))
    there = {held.outputs["endpoint"] for held in cloud.of(GKE_CLUSTER)}
    if arguments or server.removeprefix("https://") not in there:
        _refuse(cloud, f"gke-gcloud-auth-plugin {' '.join(arguments)} for {server or 'no server'}: no cluster of this project is there")
    _give(cloud, info, f"gke-gcloud-auth-plugin for {server}")


def aws(arguments: list[str]) -> None:
    """Answer `aws eks get-token --cluster-name NAME --region REGION --output json`, and nothing else."""
    cloud = _cloud()
    command = f"aws {' '.join(arguments)}"
    known = {
        ("eks", "get-token", "--cluster-name", held.inputs["name"], "--region", held.outputs["region"], "--output", "json")
        for held in cloud.of(EKS_CLUSTER)
    }
    if tuple(arguments) not in known:
        _refuse(cloud, f"{command}: ResourceNotFoundException: No cluster found")
    _give(cloud, json.loads(os.environ.get("KUBERNETES_EXEC_INFO") or "{}"), command)


def _cloud() -> CloudFolder:
    return CloudFolder(Path(os.environ[HOME_VARIABLE]))


def _refuse(cloud: CloudFolder, problem: str) -> None:
    cloud.note(Event("credentials", "", "refused", "", problem))
    sys.stderr.write(f"{problem}\n")
    raise SystemExit(254)


def _give(cloud: CloudFolder, info: dict[str, Any], command: str) -> None:
    control_plane = cloud.settings["control_plane"]
    status = {
        "clientCertificateData": Path(control_plane["certificate"]).read_text(encoding="utf-8"),
        "clientKeyData": Path(control_plane["key"]).read_text(encoding="utf-8"),
    }
    version = info.get("apiVersion", "client.authentication.k8s.io/v1beta1")
    cloud.note(Event("credentials", "", "done", "", command))
    sys.stdout.write(json.dumps({"kind": "ExecCredential", "apiVersion": version, "spec": {}, "status": status}))
