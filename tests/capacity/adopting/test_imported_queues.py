"""Import of Kueue's objects, quotas of namespaces, priority classes and nodes as teams, cohorts and pools."""

from __future__ import annotations

from typing import Any

from flexspot.capacity.adopting.cluster_pools import by_kind, read_place
from flexspot.capacity.adopting.found import Block, Found
from flexspot.capacity.adopting.proposal import ImportOptions, Proposal, propose
from flexspot.capacity.adopting.reading import from_objects
from flexspot.capacity.adopting.terraform_eks import finish

EKS_CONTEXT = "arn:aws:eks:us-east-1:111122223333:cluster/ml"


def manifest(kind: str, name: str, spec: Any = None, space: str | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name} | ({"namespace": space} if space else {}), "spec": spec or {}, **more}


def node_pool(name: str, machine: str, bought: str, gpus: int) -> dict[str, Any]:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [machine]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [bought]},
    ]
    spec = {"requirements": requirements, "nodeClassRef": {"group": "karpenter.k8s.aws", "name": "gpu"}}
    return manifest("NodePool", name, {"template": {"spec": spec}, "limits": {"nvidia.com/gpu": str(gpus)}})


def resource_groups(quotas: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    flavors = [{"name": name, "resources": [{"name": "nvidia.com/gpu", **quota}]} for name, quota in quotas.items()]
    return [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]


def queue(name: str, quotas: dict[str, dict[str, Any]], **spec: Any) -> dict[str, Any]:
    return manifest("ClusterQueue", name, {"resourceGroups": resource_groups(quotas), "namespaceSelector": {}, **spec})


def local(space: str, of: str) -> dict[str, Any]:
    return manifest("LocalQueue", "default", {"clusterQueue": of}, space)


def flavor(name: str, pool: str) -> dict[str, Any]:
    return manifest("ResourceFlavor", name, {"nodeLabels": {"karpenter.sh/nodepool": pool}})


def quota_of(space: str, hard: dict[str, str], **spec: Any) -> dict[str, Any]:
    return manifest("ResourceQuota", "gpus", {"hard": hard, **spec}, space)


NODE = manifest("Node", "a", {"providerID": "aws:///us-east-1a/i-0a"}) | {
    "metadata": {"name": "a", "labels": {"topology.kubernetes.io/zone": "us-east-1a"}}
}
OTHER = manifest("Node", "b", {"providerID": "aws:///us-east-1b/i-0b"}) | {
    "metadata": {"name": "b", "labels": {"topology.kubernetes.io/zone": "us-east-1b"}}
}
CLUSTER = [
    *(NODE, OTHER, manifest("EC2NodeClass", "gpu", {"role": "nodes", "amiSelectorTerms": [{"alias": "al2023@v20260903"}]})),
    node_pool("l4", "g6.xlarge", "spot", 8),
    node_pool("serve", "g6.2xlarge", "on-demand", 4),
    flavor("l4-flavor", "l4"),
]


def proposed(*objects: dict[str, Any], version: str = "v1.35.2-eks-1a2b3c", context: str = EKS_CONTEXT) -> Proposal:
    found = Found()
    kinds = by_kind([Block(each) for each in objects])
    read_place(kinds, version, context, found)
    from_objects(kinds, found)
    finish(found, None)
    return propose(found, ImportOptions(owner="me", environment="dev"))


def teams(proposal: Proposal) -> dict[str, dict[str, Any]]:
    return {each["name"]: {key: value for key, value in each.items() if key != "name"} for each in proposal.settings["teams"]}


def test_a_queue_of_one_namespace_is_its_team_with_what_it_lends_and_borrows() -> None:
    quota = {"nominalQuota": "4", "borrowingLimit": "2", "lendingLimit": 1}
    proposal = proposed(
        *CLUSTER,
        queue("gpu-a", {"l4-flavor": quota}, cohortName="ml", fairSharing={"weight": "3"}, stopPolicy="Hold"),
        queue("gpu-b", {"l4-flavor": {"nominalQuota": "4"}}, cohort="ml"),
        local("vision", "gpu-a"),
        local("nlp", "gpu-b"),
    )

    assert proposal.settings["cohort"] == "ml"
    limits = {"borrowing_limits": {"l4": 2}, "lending_limits": {"l4": 1}}
    assert teams(proposal) == {"vision": {"shares": {"l4": 4}, **limits, "weight": 3, "stop": "hold"}, "nlp": {"shares": {"l4": 4}}}
    assert proposal.settings["cluster"]["existing_karpenter"] == {"node_role": "nodes"}
    assert (proposal.settings["account"], proposal.settings["zones"]) == ("111122223333", ["us-east-1a", "us-east-1b"])


def test_a_queue_of_several_namespaces_is_a_cohort_from_which_its_teams_borrow() -> None:
    proposal = proposed(
        *CLUSTER, queue("shared", {"l4-flavor": {"nominalQuota": "8"}}, cohortName="ml"), local("a", "shared"), local("b", "shared")
    )

    assert proposal.settings["cohorts"] == [{"name": "shared", "shares": {"l4": 8}}]
    assert teams(proposal) == {each: {"cohort": "shared", "shares": {"l4": 0}} for each in "ab"}


def test_queues_that_lend_nothing_keep_lending_nothing() -> None:
    alone = queue("alone", {"l4-flavor": {"nominalQuota": "2"}})
    trees = [queue(name, {"l4-flavor": {"nominalQuota": "2"}}, cohortName=name) for name in ("red", "blue")]
    proposal = proposed(*CLUSTER, alone, *trees, local("a", "alone"), local("r", "red"), local("s", "blue"))

    none = {"borrowing_limits": {"l4": 0}, "lending_limits": {"l4": 0}}
    assert teams(proposal)["a"] == {"shares": {"l4": 2}, **none}
    assert {each["name"]: each for each in proposal.settings["cohorts"]} == {
        name: {"name": name, "shares": {"l4": 0}, **none} for name in ("red", "blue")
    }
    assert any(each.path == "cohort" for each in proposal.guesses)


def test_departments_keep_their_parents_and_quota() -> None:
    cohorts = [
        manifest("Cohort", "ml"),
        manifest("Cohort", "research", {"parentName": "ml", "fairSharing": {"weight": 2}}),
        manifest("Cohort", "vision", {"parentName": "research", "resourceGroups": resource_groups({"l4-flavor": {"nominalQuota": 1}})}),
    ]
    proposal = proposed(*CLUSTER, *cohorts, queue("q", {"l4-flavor": {"nominalQuota": 1}}, cohortName="vision"), local("a", "q"))

    assert proposal.settings["cohorts"] == [
        {"name": "research", "weight": 2},
        {"name": "vision", "parent": "research", "shares": {"l4": 1}},
    ]
    assert teams(proposal)["a"]["cohort"] == "vision"


def test_quotas_that_promise_more_than_a_pool_has_are_kept_and_named() -> None:
    queues = [queue(name, {"l4-flavor": {"nominalQuota": "6"}}, cohortName="ml") for name in ("a", "b")]
    proposal = proposed(*CLUSTER, *queues, local("a", "a"), local("b", "b"))

    assert {name: each["shares"]["l4"] for name, each in teams(proposal).items()} == {"a": 6, "b": 6}
    assert any("settings check` refuses" in each.why and "12" in each.why for each in proposal.remarks)


def test_quotas_of_namespaces_are_settings_of_teams_and_gpus_of_services() -> None:
    scoped = {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["gpu-production"]}]}}
    proposal = proposed(
        *CLUSTER,
        queue("a", {"l4-flavor": {"nominalQuota": "8"}}, cohortName="ml"),
        local("a", "a"),
        quota_of("a", {"requests.nvidia.com/gpu": "9", "count/jobs.batch": "50", "persistentvolumeclaims": "7", "requests.storage": "3Ti"}),
        quota_of("a", {"requests.nvidia.com/gpu": "1"}, **scoped),
        quota_of("web", {"requests.nvidia.com/gpu": "2"}),
        quota_of("kube-system", {"requests.nvidia.com/gpu": "2"}),
    )

    assert teams(proposal)["a"] == {
        "shares": {"l4": 8},
        "max_jobs": 50,
        "max_volumes": 7,
        "max_storage_gib": 3072,
        "unqueued": {"serve": 1},
    }
    assert teams(proposal)["web"] == {"unqueued": {"serve": 2}}
    assert set(teams(proposal)) == {"a", "web"}


def test_priority_classes_with_a_shipped_name_keep_their_value_and_others_are_listed() -> None:
    proposal = proposed(
        *CLUSTER, manifest("PriorityClass", "gpu-training") | {"value": 5000}, manifest("PriorityClass", "own") | {"value": 7}
    )

    assert proposal.settings["classes"] == {"training": {"priority": 5000}}
    assert [each.addresses for each in proposal.remarks if "PriorityClass own" in each.addresses] == [("PriorityClass own",)]


def test_flavors_without_a_pool_and_unsupported_strategies_are_listed() -> None:
    lost = queue("lost", {"tpu": {"nominalQuota": "4"}}, cohortName="ml")
    strict = queue("s", {"l4-flavor": {"nominalQuota": "1"}}, queueingStrategy="StrictFIFO", cohortName="ml")
    proposal = proposed(*CLUSTER, manifest("ResourceFlavor", "tpu", {"nodeLabels": {"a": "b"}}), lost, strict, local("a", "s"))
    reported = {address for each in proposal.remarks for address in each.addresses}

    assert {"ResourceFlavor tpu", "ClusterQueue lost", "ClusterQueue s queueingStrategy: StrictFIFO"} <= reported


def node(name: str, labels: dict[str, str], zone: str, gpus: str = "1") -> dict[str, Any]:
    labels = labels | {"topology.kubernetes.io/zone": zone}
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    spec = {"providerID": f"gce://acme-train/{zone}/{name}", "taints": taints}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"capacity": {"nvidia.com/gpu": gpus}}}


def test_gke_node_pools_are_read_from_their_nodes() -> None:
    l4 = {"cloud.google.com/gke-nodepool": "l4", "node.kubernetes.io/instance-type": "g2-standard-8", "cloud.google.com/gke-spot": "true"}
    t4 = {"cloud.google.com/gke-nodepool": "t4", "node.kubernetes.io/instance-type": "n1-standard-8"}
    h100 = {
        "cloud.google.com/gke-nodepool": "h100",
        "node.kubernetes.io/instance-type": "a3-highgpu-8g",
        "cloud.google.com/reservation-name": "res-1",
    }
    system = {"cloud.google.com/gke-nodepool": "system", "node.kubernetes.io/instance-type": "e2-standard-4"}
    proposal = proposed(
        *(node("a", l4, "us-central1-a"), node("b", l4, "us-central1-b"), node("c", t4, "us-central1-a", "2")),
        *(node("d", h100, "us-central1-a", "8"), node("e", system, "us-central1-a", "0")),
        version="v1.35.3-gke.1389000",
        context="gke_acme-train_us-central1_ai",
    )
    found = {each["name"]: each for each in proposal.settings["pools"]}

    assert proposal.settings["cluster"] == {"existing": "ai"}
    assert (proposal.settings["project"], proposal.settings["region"]) == ("acme-train", "us-central1")
    assert (found["l4"]["capacity_type"], found["l4"]["max_nodes"]) == ("spot", 2)
    assert (found["t4"]["capacity_type"], found["t4"]["gpus_per_node"]) == ("on-demand", 2)
    assert found["h100"]["reservation"] == {"name": "res-1"}
    assert {"pools.l4.max_nodes", "zones"} <= {each.path for each in proposal.guesses}
    assert "node pool system" in {address for each in proposal.remarks for address in each.addresses}
