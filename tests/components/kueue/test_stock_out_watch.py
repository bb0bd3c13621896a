"""The script that closes flavors, with events as Karpenter and GKE's autoscaler write them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from program_declarations import plan_of

from flexspot.capacity.catalog.accelerators import NEURON, RESOURCES
from flexspot.components.kueue import stock_out_watch
from flexspot.components.kueue.stock_out_watch import (
    GKE_POOL,
    asks_for_nothing_else,
    change_of,
    closed_until,
    gke_stock_outs,
    karpenter_stock_outs,
    lent,
    seconds,
)

NOON = seconds("2026-11-25T12:00:00Z")
HALF_AN_HOUR = 1800.0
TAINT = {"key": "flexspot.dev/stock-out", "value": "true", "effect": "NoSchedule"}


def no_capacity(node_claim: str, last: str = "2026-11-25T11:58:00Z") -> dict[str, Any]:
    """Return an event as Karpenter 1.14 writes it, about an object without a namespace."""
    return {
        "metadata": {"name": f"{node_claim}.18a1", "namespace": "default", "creationTimestamp": last},
        "involvedObject": {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": node_claim},
        "reason": "InsufficientCapacityError",
        "message": f"NodeClaim {node_claim} event: all requested instance types were unavailable during launch",
        "source": {"component": "karpenter"},
        "type": "Warning",
        "firstTimestamp": last,
        "lastTimestamp": last,
    }


def nominated(pod: str, *node_claims: str) -> dict[str, Any]:
    """Return the event about a pod for which Karpenter 1.14 creates NodeClaims, as it writes it."""
    return {
        "metadata": {"name": f"{pod}.18a0", "namespace": "nlp", "creationTimestamp": "2026-11-25T11:57:00Z"},
        "involvedObject": {"kind": "Pod", "namespace": "nlp", "name": pod},
        "reason": "Nominated",
        "message": f"Pod should schedule on: {', '.join(f'nodeclaim/{each}' for each in node_claims)}",
        "source": {"component": "karpenter"},
    }


def refused(*node_claims: str, last: str = "2026-11-25T11:58:00Z") -> list[dict[str, Any]]:
    """Return the events of NodeClaims, each for one pod, that got no machine."""
    return [event for each in node_claims for event in (nominated(f"pod-of-{each}", each), no_capacity(each, last))]


def any_node(_pod: tuple[str, str], _label: str, _pool: str) -> bool:
    return True


def failed_scale_up(pod: str, zone: str, first: str, last: str) -> dict[str, Any]:
    """Return an event as `kubectl describe pod` shows it on GKE."""
    message = f"Node scale up in zones {zone} associated with this pod failed: GCE out of resources. Pod is at risk of not being scheduled."
    return {
        "metadata": {"name": f"{pod}.{zone}", "namespace": "nlp", "creationTimestamp": first},
        "involvedObject": {"kind": "Pod", "namespace": "nlp", "name": pod},
        "reason": "FailedScaleUp",
        "message": message,
        "source": {"component": "cluster-autoscaler"},
        "firstTimestamp": first,
        "lastTimestamp": last,
    }


def flavor(pool: str, *taints: dict[str, str], until: str | None = None, key: str = "karpenter.sh/nodepool") -> dict[str, Any]:
    annotations = {"annotations": {"flexspot.dev/stock-out-until": until}} if until else {}
    labels = {key: pool, "karpenter.sh/capacity-type": "spot"}
    return {"metadata": {"name": pool, "resourceVersion": "7", **annotations}, "spec": {"nodeLabels": labels, "nodeTaints": [*taints]}}


def test_karpenters_event_closes_the_flavor_of_its_pool_and_no_other() -> None:
    stock_outs = karpenter_stock_outs(refused("l4-spot-x8k2z"), any_node)

    assert closed_until(flavor("l4-spot"), stock_outs, HALF_AN_HOUR) == seconds("2026-11-25T12:28:00Z")
    assert closed_until(flavor("l4"), stock_outs, HALF_AN_HOUR) == 0
    assert closed_until(flavor("t4-spot"), stock_outs, HALF_AN_HOUR) == 0


def test_the_last_event_counts() -> None:
    stock_outs = karpenter_stock_outs([*refused("l4-spot-x8k2z"), *refused("l4-spot-9bbbw", last="2026-11-25T11:30:00Z")], any_node)

    assert closed_until(flavor("l4-spot"), stock_outs, HALF_AN_HOUR) == seconds("2026-11-25T12:28:00Z")


def test_a_flavor_of_several_pools_is_never_closed_and_each_flavor_of_a_stack_is_identified_by_its_pool() -> None:
    any_l4 = {"metadata": {"name": "any-l4"}, "spec": {"nodeLabels": {"karpenter.k8s.aws/instance-gpu-name": "l4"}}}
    assert closed_until(any_l4, karpenter_stock_outs(refused("any-l4-x8k2z"), any_node), HALF_AN_HOUR) == 0
    for each in plan_of("prod-eks").flavors:
        made = {"metadata": {"name": each.name}, "spec": {"nodeLabels": each.node_labels}}
        assert closed_until(made, karpenter_stock_outs(refused(f"{each.pools[0]}-x8k2z"), any_node), HALF_AN_HOUR) > NOON
    for each in plan_of("prod-gke").flavors:
        assert each.node_labels[GKE_POOL] == each.pools[0]


@pytest.mark.parametrize(
    "pod,closed",
    [
        ({"spec": {"nodeSelector": {GKE_POOL: "l4-spot"}}, "metadata": {}}, True),
        ({"spec": {"nodeSelector": {GKE_POOL: "l4-spot"}, "nodeName": "gke-1"}, "metadata": {}}, False),
        ({"spec": {"nodeSelector": {GKE_POOL: "l4-spot"}}, "metadata": {"deletionTimestamp": "2026-11-25T11:59:00Z"}}, False),
        ({"spec": {}, "metadata": {}}, False),
        (None, False),
    ],
    ids=["waits", "got a node from another zone", "is being deleted", "of no pool", "is gone"],
)
def test_gkes_event_counts_while_its_pod_has_no_node(pod: dict[str, Any] | None, closed: bool) -> None:  # noqa: FBT001
    events = [failed_scale_up("sweep-0-abc", "us-central1-a", "2026-11-25T11:50:00Z", "2026-11-25T11:58:00Z")]
    stock_outs = gke_stock_outs(events, {("nlp", "sweep-0-abc"): pod} if pod else {}, NOON, any_node)

    assert (closed_until(flavor("l4-spot", key=GKE_POOL), stock_outs, HALF_AN_HOUR) > NOON) is closed


def test_gke_is_given_the_time_to_try_its_other_zones() -> None:
    pods = {("nlp", "sweep-0-abc"): {"spec": {"nodeSelector": {GKE_POOL: "l4-spot"}}, "metadata": {}}}
    first = failed_scale_up("sweep-0-abc", "us-central1-a", "2026-11-25T11:57:00Z", "2026-11-25T11:57:00Z")
    second = failed_scale_up("sweep-0-abc", "us-central1-b", "2026-11-25T11:59:00Z", "2026-11-25T11:59:00Z")

    assert gke_stock_outs([first, second], pods, NOON, any_node) == []
    assert gke_stock_outs([first, second], pods, NOON + 120, any_node) == [(GKE_POOL, "l4-spot", seconds("2026-11-25T11:59:00Z"))]


def test_another_reason_of_gkes_autoscaler_is_no_stock_out() -> None:
    other = failed_scale_up("sweep-0-abc", "us-central1-a", "2026-11-25T11:00:00Z", "2026-11-25T11:58:00Z")
    other["message"] = other["message"].replace("GCE out of resources", "GCE quota exceeded")
    pods = {("nlp", "sweep-0-abc"): {"spec": {"nodeSelector": {GKE_POOL: "l4-spot"}}, "metadata": {}}}

    assert gke_stock_outs([other], pods, NOON, any_node) == []


def queue(own: str | int) -> dict[str, Any]:
    flavors = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": "9"}, {"name": "nvidia.com/gpu", "nominalQuota": gpus}]}
        for name, gpus in (("l4-spot", own), ("t4-spot", "8"))
    ]
    return {"metadata": {"name": "nlp"}, "spec": {"resourceGroups": [{"flavors": flavors}]}}


def workload(ready: str, flavor: str = "l4-spot", gpus: str = "4", **conditions: str) -> dict[str, Any]:
    """Return a workload as Kueue writes it after admission."""
    flavors = {"nvidia.com/gpu": flavor, "cpu": flavor}
    assigned = {"name": "main", "count": 1, "flavors": flavors, "resourceUsage": {"nvidia.com/gpu": gpus, "cpu": "1"}}
    written = [{"type": name, "status": status} for name, status in {"PodsReady": ready, **conditions}.items()]
    return {"status": {"admission": {"clusterQueue": "nlp", "podSetAssignments": [assigned]}, "conditions": written}}


@pytest.mark.parametrize(
    "own,work,stays_open",
    [
        (2, [workload("True")], {"l4-spot"}),
        ("4", [workload("True"), workload("False", gpus="1")], {"l4-spot"}),
        ("0", [workload("True", gpus="1k")], {"l4-spot"}),
        ("2", [workload("False")], set()),
        ("4", [workload("True")], set()),
        ("1k", [workload("True")], set()),
        ("2", [workload("True", Finished="True")], set()),
        ("2", [workload("True", "t4-spot")], set()),
        ("2", [{"status": {}}, {}], set()),
    ],
    ids=[
        "runs on borrowed GPUs",
        "runs beside what waits on borrowed ones",
        "a thousand",
        "waits for nodes",
        "runs on its own",
        "owns a thousand",
        "is done",
        "runs elsewhere",
        "waits in the queue",
    ],
)
def test_what_is_lent_and_runs_can_be_taken_back_in_an_open_flavor_alone(
    own: str | int, work: list[dict[str, Any]], stays_open: set[str]
) -> None:
    assert lent([queue(own), {"metadata": {"name": "new"}, "spec": {}}], work) == stays_open


def test_neuron_devices_are_lent_like_gpus() -> None:
    quotas = [{"name": NEURON.resource, "nominalQuota": "16"}, {"name": "nvidia.com/gpu", "nominalQuota": "0"}]
    queue_of_both = {"metadata": {"name": "nlp"}, "spec": {"resourceGroups": [{"flavors": [{"name": "trn-spot", "resources": quotas}]}]}}
    work = workload("True")
    [assigned] = work["status"]["admission"]["podSetAssignments"]
    assigned |= {"flavors": {NEURON.resource: "trn-spot", "cpu": "trn-spot"}, "resourceUsage": {NEURON.resource: "32", "cpu": "1"}}

    assert lent([queue_of_both], [work]) == {"trn-spot"}
    assigned["resourceUsage"][NEURON.resource] = "16"
    assert lent([queue_of_both], [work]) == set()


def test_closing_keeps_a_flavors_own_taints_and_applies_to_the_version_that_was_read() -> None:
    own = {"key": "flexspot.dev/class", "value": "training", "effect": "NoSchedule"}

    change = change_of(flavor("l4-spot", own), NOON + 60, NOON)

    assert change == {
        "metadata": {"resourceVersion": "7", "annotations": {"flexspot.dev/stock-out-until": "2026-11-25T12:01:00Z"}},
        "spec": {"nodeTaints": [own, TAINT]},
    }


def test_a_later_event_moves_the_end_and_the_same_event_changes_nothing() -> None:
    closed = flavor("l4-spot", TAINT, until="2026-11-25T12:01:00Z")

    assert change_of(closed, NOON + 60, NOON) is None
    later = change_of(closed, NOON + 120, NOON)
    assert later is not None
    assert later["spec"]["nodeTaints"] == [TAINT], "once"


def test_a_written_time_stays_when_the_pods_that_asked_are_gone() -> None:
    closed = flavor("l4-spot", TAINT, until="2026-11-25T12:20:00Z")

    assert closed_until(closed, [], HALF_AN_HOUR) == seconds("2026-11-25T12:20:00Z")
    later = karpenter_stock_outs(refused("l4-spot-x8k2z"), any_node)
    assert closed_until(closed, later, HALF_AN_HOUR) == seconds("2026-11-25T12:28:00Z")


def test_a_flavor_opens_when_its_time_is_over_or_its_owners_need_it() -> None:
    own = {"key": "flexspot.dev/class", "value": "training", "effect": "NoSchedule"}
    closed = flavor("l4-spot", TAINT, own, until="2026-11-25T12:01:00Z")

    for until in (NOON - 1, 0.0):
        assert change_of(closed, until, NOON) == {
            "metadata": {"resourceVersion": "7", "annotations": {"flexspot.dev/stock-out-until": None}},
            "spec": {"nodeTaints": [own]},
        }
    assert change_of(flavor("l4-spot", own), 0.0, NOON) is None


OF_POOL = {"karpenter.sh/nodepool": "l4-spot", "karpenter.sh/capacity-type": "spot"}


def of_nodes(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}}}


def within(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}


def mounted(**volume: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "data", **volume}]}


@pytest.mark.parametrize(
    "spec,broad",
    [
        ({}, True),
        ({"nodeSelector": OF_POOL}, True),
        ({"nodeSelector": {**OF_POOL, "kubernetes.io/os": "linux"}}, True),
        ({"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"}}, False),
        ({"nodeSelector": {"karpenter.sh/capacity-type": "on-demand"}}, False),
        (of_nodes(within("karpenter.sh/nodepool", "h100", "l4-spot")), True),
        (of_nodes(within("topology.kubernetes.io/zone", "us-east-1a"), within("karpenter.sh/nodepool", "l4-spot")), True),
        (of_nodes(within("node.kubernetes.io/instance-type", "g6.48xlarge")), False),
        (of_nodes({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}), False),
        ({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}, False),
        ({"topologySpreadConstraints": [{"topologyKey": "topology.kubernetes.io/zone"}]}, False),
        (mounted(emptyDir={}), True),
        (mounted(ephemeral={}), False),
        (mounted(persistentVolumeClaim={"claimName": "checkpoints"}), True),
        (mounted(persistentVolumeClaim={"claimName": "disk-in-a-zone"}), False),
        (mounted(persistentVolumeClaim={"claimName": "missing"}), False),
    ],
)
def test_a_pod_asks_for_the_whole_pool_or_for_a_part_of_it(spec: dict[str, Any], broad: bool) -> None:  # noqa: FBT001
    claims = {"checkpoints": {"spec": {"storageClassName": ""}}, "disk-in-a-zone": {"spec": {"storageClassName": "gp3"}}}

    assert asks_for_nothing_else({"spec": spec}, OF_POOL, claims) is broad


def test_a_claim_counts_if_all_its_pods_are_known_and_ask_for_the_whole_pool() -> None:
    together = [nominated("first", "l4-spot-x8k2z"), nominated("second", "l4-spot-x8k2z", "l4-spot-9bbbw"), no_capacity("l4-spot-x8k2z")]

    def first_only(pod: tuple[str, str], _label: str, _pool: str) -> bool:
        return pod == ("nlp", "first")

    assert karpenter_stock_outs(together, any_node) != []
    assert karpenter_stock_outs(together, first_only) == [], "the claim has the second pod's zone"
    assert karpenter_stock_outs([no_capacity("l4-spot-x8k2z")], any_node) == [], "what it asked for is not known"


def test_it_knows_the_devices_of_the_catalog_which_it_cannot_import() -> None:
    assert stock_out_watch.DEVICES == RESOURCES


def test_it_runs_as_a_file_without_packages_and_reports_an_api_server_that_does_not_answer(tmp_path: Path) -> None:
    program = tmp_path / "watch.py"
    program.write_bytes(Path(stock_out_watch.__file__).read_bytes())
    server = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    environment = {stock_out_watch.CREDENTIALS_VARIABLE: str(tmp_path / "none"), stock_out_watch.HOLD_VARIABLE: "1800", **server}

    # -I and -S: neither the checkout nor installed packages.
    with subprocess.Popen([sys.executable, "-I", "-S", program], env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        running.terminate()

    assert line.startswith("no answer from the API server (1 of 15): [Errno 2]")
