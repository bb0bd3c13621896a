"""Which cluster it is that runs: its cloud, account, region, zones and name, as far as nodes and the kubeconfig's context say it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from capacity.catalog.node_labels import ZONE_LABEL
from capacity.catalog.platform import Platform

if TYPE_CHECKING:
    from capacity.adopting.cluster_pools import Objects
    from capacity.adopting.found import Found

_GCE: Final = re.compile(r"gce://([a-z][a-z0-9.:-]+)/([a-z]+-[a-z]+\d+-[a-z])/.+")
_AWS: Final = re.compile(r"aws:///([a-z]{2}(?:-[a-z]+)+-\d)[a-z]/i-.+")
_GKE_CONTEXT: Final = re.compile(r"gke_([a-z][a-z0-9.:-]+)_([a-z0-9-]+)_(.+)")
"""As `gcloud container clusters get-credentials` names it: gke_PROJECT_LOCATION_CLUSTER."""

_EKS_CONTEXT: Final = re.compile(r"arn:aws[a-z-]*:eks:([a-z0-9-]+):(\d{12}):cluster/(.+)")
"""As `aws eks update-kubeconfig` names it: the cluster's ARN."""

_ZONAL: Final = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]")
_VERSION: Final = re.compile(r"v?(1\.\d+)")


def read_place(objects: Objects, version: str, context: str | None, found: Found) -> None:
    """Sets the cloud and the place of a cluster that runs, unless a state has said them; `version` is what its API server says it is."""
    nodes = objects.get("Node", [])
    providers = [each.text("spec", "providerID") or "" for each in nodes]
    on_gke = "-gke." in version or any(each.startswith("gce://") for each in providers)
    on_eks = "-eks-" in version or any(each.startswith("aws://") for each in providers) or bool(objects.get("EC2NodeClass"))
    if found.cloud is None and objects.get("KWOKNodeClass"):
        found.cloud = Platform.LOCAL
        return
    if found.cloud is not None or not (on_gke or on_eks):
        return
    found.cloud = Platform.GKE if on_gke else Platform.EKS
    found.settings["zones"] = sorted({zone for each in nodes if (zone := each.words("metadata", "labels").get(ZONE_LABEL))})
    found.guess("zones", "those in which nodes are now; there may be more")
    found.settings["cluster"] = _on_gke(providers, context or "", found) if on_gke else _on_eks(providers, context or "", version, found)
    if objects.get("ClusterQueue"):
        found.settings["queueing"] = {"existing_kueue": True}
        found.guess("queueing.existing_kueue", "the cluster has ClusterQueues; a stack needs v1beta2 of Kueue, with fair sharing on")


def _on_gke(providers: list[str], context: str, found: Found) -> dict[str, str]:
    for machine in filter(None, map(_GCE.fullmatch, providers)):
        zone = _ZONAL.fullmatch(machine[2])
        found.settings |= {"project": machine[1]} | ({"region": zone[1]} if zone else {})
    named = _GKE_CONTEXT.fullmatch(context)
    if named is None:
        return {}
    zonal = _ZONAL.fullmatch(named[2])
    found.settings |= {"project": named[1], "region": zonal[1] if zonal else named[2]}
    return {"existing": named[3]} | ({"zone": named[2]} if zonal else {})


def _on_eks(providers: list[str], context: str, version: str, found: Found) -> dict[str, str]:
    if region := next((machine[1] for machine in filter(None, map(_AWS.fullmatch, providers))), None):
        found.settings["region"] = region
    cluster: dict[str, str] = {}
    if named := _EKS_CONTEXT.fullmatch(context):
        found.settings |= {"region": named[1], "account": named[2]}
        cluster["existing"] = named[3]
    if minor := _VERSION.match(version):
        cluster["version"] = minor[1]
    return cluster
