"""`flexspot audit` on a real API server: a planted defect of each kind of object next to correct ones, and a user with limited rights."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from flexspot.infra.cli.app import app
from flexspot.lab.cluster import Cluster
from flexspot.lab.exercise.play import NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.control_plane import LabControlPlane

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        tested_by="test_objects_are_linted_except_managed_and_system_ones, "
        "test_idle_nodes_are_reported_with_their_cost_and_the_pods_that_keep_them, "
        "test_text_names_forbidden_lists_and_the_first_step"
    ),
]

CHECKOUT = Path(__file__).resolve().parents[2]
SPACE = "audited"
KUEUE = "kueue.x-k8s.io/v1beta2"
GPUS = {"nvidia.com/gpu": "1"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
SPOT_TAINT = {"key": "flexspot.dev/capacity-type", "value": "spot", "effect": "NoSchedule"}
SPOT = {"key": "flexspot.dev/capacity-type", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
LABELS = {"flexspot.dev/owner": "research"}


def kube_object(version: str, kind: str, name: str, spec: dict[str, Any] | None = None, *, space: str = "", **metadata: Any) -> KubeObject:
    named = {"name": name, "labels": LABELS, **({"namespace": space} if space else {}), **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": named, **({} if spec is None else {"spec": spec})}


def node_pool(name: str, *, taints: Any = (TAINT, SPOT_TAINT), limits: Any = None, node_class: str = "workloads") -> KubeObject:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.xlarge"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
    ]
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": node_class}
    template = {"spec": {"nodeClassRef": reference, "requirements": requirements, "taints": list(taints)}}
    return kube_object(
        "karpenter.sh/v1", "NodePool", name, {"template": template, "limits": {"nvidia.com/gpu": 8} if limits is None else limits}
    )


def cluster_queue(name: str, flavor: str, **spec: Any) -> KubeObject:
    covered = ["cpu", "memory", "nvidia.com/gpu"]
    resources = [{"name": each, "nominalQuota": 4} for each in covered]
    group = {"coveredResources": covered, "flavors": [{"name": flavor, "resources": resources}]}
    return kube_object(KUEUE, "ClusterQueue", name, {**spec, "resourceGroups": [group]})


def flavor(name: str, labels: dict[str, str]) -> KubeObject:
    tolerations = [{"key": TAINT["key"], "operator": "Exists", "effect": "NoSchedule"}, SPOT]
    return kube_object(KUEUE, "ResourceFlavor", name, {"nodeLabels": labels, "tolerations": tolerations})


def local_queue(name: str, leads_to: str) -> KubeObject:
    return kube_object(KUEUE, "LocalQueue", name, {"clusterQueue": leads_to}, space=SPACE)


def pod_spec(limits: dict[str, str], **more: Any) -> dict[str, Any]:
    resources = {"limits": limits, "requests": limits}
    return {
        "containers": [{"name": "main", "image": "registry.acme.com/train:1", "resources": resources}],
        "restartPolicy": "Never",
        **more,
    }


def job(name: str, queue: str = "gpus") -> KubeObject:
    labels = {**LABELS, **({"kueue.x-k8s.io/queue-name": queue} if queue else {})}
    ignored = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    template = {"spec": {**pod_spec(GPUS), "terminationGracePeriodSeconds": 60}}
    spec = {"suspend": True, "backoffLimit": 3, "podFailurePolicy": {"rules": ignored}, "template": template}
    return kube_object("batch/v1", "Job", name, spec, space=SPACE, labels=labels)


RIGHT: list[KubeObject] = [
    kube_object("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "workloads"),
    node_pool("right"),
    flavor("right", {"karpenter.sh/nodepool": "right"}),
    cluster_queue("right", "right", namespaceSelector={}),
    local_queue("gpus", "right"),
    job("right"),
    kube_object("v1", "ResourceQuota", "right", {"hard": {"requests.nvidia.com/gpu": "8"}}, space=SPACE),
]

PLANTED: dict[str, KubeObject] = {
    "gpu-pool-without-taint": node_pool("untainted", taints=[SPOT_TAINT]),
    "gpu-pool-without-limit": node_pool("unbounded", limits={}),
    "nodepool-references-missing-class": node_pool("classless", node_class="nowhere"),
    "queue-admits-no-namespace": cluster_queue("closed", "right"),
    "work-in-missing-queue": job("lost", "nowhere-at-all"),
    "job-without-queue": job("past", ""),
}
"""By rule, the object that violates it."""

WASTED = ("idle-gpu-nodes", "untainted-gpu-nodes", "on-demand-where-spot-would-do")


def node(name: str, group: str, taints: list[dict[str, str]]) -> KubeObject:
    labels = {
        "eks.amazonaws.com/nodegroup": group,
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "node.kubernetes.io/instance-type": "g6.xlarge",
        "topology.kubernetes.io/region": "us-east-1",
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}


@pytest.fixture(scope="module")
def planted(stack_lab: LabControlPlane) -> Iterator[Cluster]:
    cluster = Cluster(stack_lab.home.kubeconfig)
    cluster.apply(kube_object("v1", "Namespace", SPACE))
    cluster.wait_for("v1/ServiceAccount", bool, f"the service account of {SPACE}", namespace=SPACE)
    cluster.apply(*RIGHT, *PLANTED.values())
    for name, group, taints in (("idle", "idle", [TAINT]), ("bare", "bare", []), ("dear", "dear", [TAINT])):
        cluster.apply(node(name, group, taints))
        cluster.patch(NODE, name, {"status": {"capacity": {"cpu": "4", **GPUS}, "allocatable": {"cpu": "4", **GPUS}}}, subresource="status")
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, SPOT]
    for name in ("bare", "dear"):
        spec = pod_spec(GPUS, nodeName=name, tolerations=tolerations if name == "dear" else tolerations[:2])
        cluster.apply(kube_object("v1", "Pod", f"on-{name}", spec, space=SPACE))
    yield cluster
    for name in ("idle", "bare", "dear"):
        cluster.delete(NODE, name)


def audited(kubeconfig: Path, *options: str) -> tuple[int, dict[str, Any]]:
    ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig), "--format", "json", "--idle-after", "0", *options])
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    return ended.exit_code, json.loads(ended.output)


def names_of(report: dict[str, Any], rule: str) -> set[str]:
    return {each["object"].rpartition("/")[2] for each in report["findings"] if each["rule"] == rule}


def test_every_planted_defect_is_found_without_false_findings(planted: Cluster) -> None:
    code, report = audited(planted.kubeconfig)

    missed = {rule for rule, each in PLANTED.items() if each["metadata"]["name"] not in names_of(report, rule)}
    missed |= {rule for rule, pool in zip(WASTED, ("idle", "bare", "dear"), strict=True) if pool not in names_of(report, rule)}
    accused = [each for each in report["findings"] if each["object"].rpartition("/")[2] in {"right", "gpus", "workloads"}]
    assert (code, missed) == (1, set())
    assert accused == []
    assert report["summary"]["complete"]
    # There is no second finding for one defect, and none for objects without one.
    expected = {(rule, each["metadata"]["name"]) for rule, each in PLANTED.items()}
    others = {(each["rule"], each["object"].rpartition("/")[2]) for each in report["findings"] if each["rule"] not in WASTED} - expected
    assert others <= ALSO, others - ALSO


ALSO = {("toleration-without-selector", "on-dear")}
"""Findings about planted objects in addition to the intended ones."""


def test_a_user_with_limited_rights_sees_the_missing_lists_and_no_false_findings(planted: Cluster, tmp_path: Path) -> None:
    rules = [{"apiGroups": ["batch", "apps", "karpenter.sh"], "resources": ["*"], "verbs": ["list"]}]
    planted.apply(
        kube_object("v1", "ServiceAccount", "auditor", space=SPACE),
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "auditor"}, "rules": rules},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "auditor"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "auditor"},
            "subjects": [{"kind": "ServiceAccount", "name": "auditor", "namespace": SPACE}],
        },
    )
    kubectl = [CHECKOUT / ".tools" / "bin" / "kubectl", "--kubeconfig", planted.kubeconfig, "create", "token", "auditor", "-n", SPACE]
    token = subprocess.run(kubectl, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    settings = yaml.safe_load(planted.kubeconfig.read_text())
    settings["users"] = [{"name": each["name"], "user": {"token": token}} for each in settings["users"]]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(settings))

    _, report = audited(tmp_path / "kubeconfig")

    lacking = set(report["summary"]["lacking"])
    assert {
        "list nodes",
        "list pods",
        "list namespaces",
        "list localqueues.kueue.x-k8s.io",
        "list kwoknodeclasses.karpenter.kwok.sh",
    } <= lacking
    assert not [each for each in lacking if each.endswith((".batch", ".apps", ".karpenter.sh"))]
    assert names_of(report, "gpu-pool-without-taint") == {"untainted"}
    assert names_of(report, "gpu-pool-without-limit") == {"unbounded"}
    # Findings that depend on lists it may not read are not reported.
    assert not {"work-in-missing-queue", "nodepool-references-missing-class", *WASTED} & {each["rule"] for each in report["findings"]}
