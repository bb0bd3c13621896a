"""Everything on a control plane, as names, for comparing what was before with what is after."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import urllib3
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

if TYPE_CHECKING:
    from pathlib import Path

_COMES_AND_GOES = {
    "APIService",
    "ComponentStatus",
    "ControllerRevision",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "Lease",
    "Pod",
    "ReplicaSet",
}
"""Kinds whose objects controllers make and delete as they like."""


def all_objects(kubeconfig: Path) -> set[str]:
    """Each object as `apiVersion/Kind namespace/name`, in the version that its group prefers; what is being deleted is gone."""
    settings: Any = kubernetes_client.Configuration()
    kubernetes_config.load_kube_config(str(kubeconfig), client_configuration=settings)
    found: set[str] = set()
    with urllib3.PoolManager(ca_certs=settings.ssl_ca_cert, cert_file=settings.cert_file, key_file=settings.key_file) as pool:

        def get(path: str) -> Any:
            return json.loads(pool.request("GET", f"{settings.host}{path}").data)

        groups: list[str] = [group["preferredVersion"]["groupVersion"] for group in get("/apis")["groups"]]
        for version in ["v1", *groups]:
            root = "/api/v1" if version == "v1" else f"/apis/{version}"
            for resource in get(root)["resources"]:
                if "/" in resource["name"] or "list" not in resource["verbs"] or resource["kind"] in _COMES_AND_GOES:
                    continue
                for each in get(f"{root}/{resource['name']}")["items"]:
                    found |= _named(f"{version}/{resource['kind']}", each["metadata"])
    return found


def _named(kind: str, metadata: dict[str, Any]) -> set[str]:
    name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    return set() if "deletionTimestamp" in metadata else {f"{kind} {name}"}
