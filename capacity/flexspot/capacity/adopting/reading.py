"""Entry points: reads a Terraform state, or what a cluster lists, or both. Reports everything that it does not use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

from flexspot.capacity.adopting import terraform_eks, terraform_gke
from flexspot.capacity.adopting.cluster_pools import by_kind, name_in, read_node_pools, read_nodes
from flexspot.capacity.adopting.cluster_queues import read_namespaces, read_priorities, read_queues
from flexspot.capacity.adopting.found import Block, Found, Known, one_line
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.adopting.cluster_pools import Objects
    from flexspot.capacity.adopting.terraform_state import TerraformResource

_MANIFESTS: Final = frozenset({"kubectl_manifest", "kubernetes_manifest"})
_NAMESPACES: Final = frozenset({"kubernetes_namespace", "kubernetes_namespace_v1"})
_QUOTAS: Final = frozenset({"kubernetes_resource_quota", "kubernetes_resource_quota_v1"})
_MOST_YAML: Final = 1_000_000
"""Characters: more than etcd accepts for an object."""

_READ: Final = frozenset(
    {
        *(terraform_eks.CLUSTER, terraform_eks.NODE_GROUP, terraform_eks.SUBNET, terraform_eks.TEMPLATE, terraform_eks.ROLE),
        *(terraform_gke.CLUSTER, terraform_gke.NODE_POOL, "helm_release", *_MANIFESTS, *_NAMESPACES, *_QUOTAS),
    }
)
_KINDS: Final = frozenset(
    {
        *("NodePool", "EC2NodeClass", "NodeClass", "KWOKNodeClass", "Node", "ResourceFlavor", "ClusterQueue", "LocalQueue", "Cohort"),
        *("Namespace", "ResourceQuota", "PriorityClass", "AdmissionCheck", "ProvisioningRequestConfig", "Topology"),
    }
)
"""Kinds of objects that describe a stack, or are derived from one."""


def from_state(resources: list[TerraformResource], found: Found) -> Objects:
    """Read a state into `found`, and return the objects of its manifests. Raises ExplainedError if the state has several clusters."""
    managed = [each for each in resources if each.managed]
    clusters = [each for each in managed if each.type in {terraform_eks.CLUSTER, terraform_gke.CLUSTER}]
    if len(clusters) > 1:
        named = ", ".join(each.address for each in clusters[:4])
        problem = one_line(f"the state has {len(clusters)} clusters ({named}), and a stack has one.")
        raise ExplainedError(
            problem, "write a state with one of them: terraform state pull, one root module each.", exit_code=ExitCode.BAD_USAGE
        )
    of: dict[str, list[TerraformResource]] = {}
    for each in managed:
        of.setdefault(each.type, []).append(each)
    subnets = [each for each in resources if each.type == terraform_eks.SUBNET]
    for each in of.get(terraform_gke.CLUSTER, []):
        terraform_gke.read_cluster(each, found)
        named_pools = {name for pool in of.get(terraform_gke.NODE_POOL, []) if (name := pool.values.text("name"))}
        of.setdefault(terraform_gke.NODE_POOL, []).extend(terraform_gke.inline_pools(each, named_pools))
    for each in of.get(terraform_gke.NODE_POOL, []):
        found.cloud = found.cloud or Platform.GKE
        terraform_gke.read_node_pool(each, found)
    for each in of.get(terraform_eks.CLUSTER, []):
        terraform_eks.read_cluster(each, found)
    templates = {identity: each.values for each in of.get(terraform_eks.TEMPLATE, []) if (identity := each.values.text("id"))}
    if found.cloud is Platform.EKS or of.get(terraform_eks.NODE_GROUP):
        found.cloud = Platform.EKS
        terraform_eks.read_subnets(subnets, of.get(terraform_eks.NODE_GROUP, []), found)
    for each in of.get(terraform_eks.ROLE, []):
        terraform_eks.read_node_role(each, found)
    zones = {each.values.text("id") or "": each.values.text("availability_zone") or "" for each in subnets}
    for each in of.get(terraform_eks.NODE_GROUP, []):
        terraform_eks.read_node_group(each, templates, zones, found)
    objects, where = _manifests(managed, found)
    kinds = by_kind(objects)
    charts = _charts(of.get("helm_release", []), found)
    from_objects(kinds, found, where)
    terraform_eks.finish(found, charts)
    _report_unused(managed, found)
    return kinds


def from_objects(objects: Objects, found: Found, where: dict[str, str] | None = None) -> None:
    """Read the objects of a cluster into `found`. `where` maps those of a state to their addresses."""
    named = where or {}
    read_node_pools(objects, found, named)
    read_nodes(objects, found)
    read_queues(objects, found, named)
    read_namespaces(objects, found, named)
    read_priorities(objects, found, named)
    for each in objects.get("Namespace", []):
        name = name_in(each)
        if any(team.name == name for team in found.teams):
            found.known.append(Known("kubernetes:core/v1:Namespace", name, name, named.get(f"Namespace/{name}", f"Namespace {name}")))


def _manifests(managed: list[TerraformResource], found: Found) -> tuple[list[Block], dict[str, str]]:
    """Return the objects that are written in a state, and the address of each by kind and name."""
    objects: list[Block] = []
    where: dict[str, str] = {}
    for each in managed:
        if each.type in _MANIFESTS:
            written = _manifest(each)
            if written is None:
                found.leave_out(each.address, "its manifest is not in the state, or is not an object", "read the cluster too: --kubeconfig")
                continue
            if (kind := written.text("kind") or "?") not in _KINDS:
                found.leave_out(each.address, f"is an object of kind {kind}, which says nothing of pools or teams", "keep it in Terraform")
                continue
        elif each.type in _NAMESPACES | _QUOTAS:
            written = _typed(each)
        else:
            continue
        objects.append(written)
        key = written.text("metadata", "namespace") if written.text("kind") == "ResourceQuota" else name_in(written)
        where[f"{written.text('kind')}/{key}"] = each.address
    return objects, where


def _manifest(each: TerraformResource) -> Block | None:
    """Return the object of a manifest, or None.

    For kubernetes_manifest it is `object` or `manifest`. For kubectl_manifest it is `yaml_body`, which a state may withhold, or its parsed
    form.
    """
    for field in ("object", "manifest"):
        block = each.values.block(field)
        if block.text("kind"):
            return block
    text = each.values.text("yaml_body_parsed") or each.values.text("yaml_body")
    if text is None or len(text) > _MOST_YAML:
        return None
    try:
        # Objects do not need aliases, and nested aliases can expand to billions of values.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.CSafeLoader)):
            return None
        parsed: Any = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    block = Block(cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {})
    return block if block.text("kind") else None


def _typed(each: TerraformResource) -> Block:
    """Return a namespace or a quota of the Kubernetes provider as an object."""
    metadata = each.values.block("metadata")
    kept = {"name": metadata.text("name"), "namespace": metadata.text("namespace"), "labels": metadata.words("labels")}
    kind = "Namespace" if each.type in _NAMESPACES else "ResourceQuota"
    spec: dict[str, Any] = {"hard": each.values.block("spec").words("hard")}
    if each.values.block("spec").at("scopes") or each.values.block("spec").blocks("scope_selector"):
        spec["scopes"] = ["PriorityClass"]
    return Block({"kind": kind, "metadata": kept, "spec": spec})


def _charts(releases: Iterable[TerraformResource], found: Found) -> str | None:
    """Record controllers that are already installed, and return Karpenter's namespace and name."""
    karpenter = None
    for each in releases:
        chart, name, space = (each.values.text(key) or "" for key in ("chart", "name", "namespace"))
        short = chart.rpartition("/")[2]
        if short == "kueue":
            found.settings["queueing"] = {"existing_kueue": True}
            found.guess("queueing.existing_kueue", f"{each.address}: a stack needs v1beta2 of it, with fair sharing on")
        elif short == "gpu-operator" and found.cloud is Platform.EKS:
            cluster = found.settings.get("cluster")
            if isinstance(cluster, dict):
                cluster["existing_gpu_operator"] = True
        elif short == "karpenter" and re.fullmatch(r"[a-z0-9-]+", space) and re.fullmatch(r"[a-z0-9-]+", name):
            karpenter = f"{space}/{name}"
        elif short != "karpenter-crd":
            found.leave_out(each.address, "is a chart without a setting", "keep it in Terraform")
    return karpenter


def _report_unused(managed: list[TerraformResource], found: Found) -> None:
    """Record unused resources: one remark per type with all addresses."""
    kinds: dict[str, list[str]] = {}
    for each in managed:
        if each.type not in _READ or (
            each.type in {terraform_eks.ROLE, terraform_eks.TEMPLATE, terraform_eks.SUBNET} and _unused(each, found)
        ):
            kinds.setdefault(each.type, []).append(each.address)
    for kind, addresses in sorted(kinds.items()):
        found.leave_out(addresses, f"{kind} says nothing of pools or teams", "keep it in Terraform")


def _unused(each: TerraformResource, found: Found) -> bool:
    """Return whether no value of the resource is in the settings."""
    if each.type == terraform_eks.SUBNET:
        used = found.settings.get("network", {}).get("existing_private_subnets", [])
        reported = {address for remark in found.remarks for address in remark.addresses}
        return each.values.text("id") not in used and each.address not in reported
    if each.type == terraform_eks.ROLE:
        role = found.settings.get("cluster", {}).get("existing_karpenter", {}).get("node_role")
        return role is None or each.values.text("name") != role
    return False
