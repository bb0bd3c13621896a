"""Queues: the flavors, cohorts and queues that it registers, and invalid arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from queue_arguments import LABELS, flavor_args, queue_args, queues_args, quota_args

from flexspot.components.kueue.queues import Queues

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"


def specs(register: Register, kind: str, **changes: Any) -> list[dict[str, Any]]:
    return [each.get("spec") for each in register(lambda: Queues("queues", queues_args(**changes))).of(f"{KUEUE}:{kind}")]


def test_a_cluster_queue_lists_resources_in_the_order_that_kueue_requires(register: Register) -> None:
    [queue] = specs(register, "ClusterQueue")

    [group] = queue["resourceGroups"]
    assert [each["name"] for each in group["flavors"][0]["resources"]] == group["coveredResources"] == ["cpu", "memory", "nvidia.com/gpu"]
    assert [each["nominalQuota"] for each in group["flavors"][0]["resources"]] == ["8", "32Gi", "2"]


def test_a_cluster_queue_only_admits_its_own_namespace_and_can_get_its_share_back(register: Register) -> None:
    [queue] = specs(register, "ClusterQueue")

    assert queue["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "red"}}
    # facts/apis.md G11: under fair sharing Kueue ignores borrowWithinCohort.
    assert queue["preemption"] == {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    assert (queue["cohortName"], queue["queueingStrategy"]) == ("ai-platform", "BestEffortFIFO")


def test_defaults_are_a_weight_of_one_an_open_queue_and_no_admission_check(register: Register) -> None:
    [queue] = specs(register, "ClusterQueue")

    assert (queue["fairSharing"], queue["stopPolicy"]) == ({"weight": "1"}, "None")
    assert "admissionChecksStrategy" not in queue


@pytest.mark.parametrize("weight,written", [(3, "3"), (1000, "1k")])
def test_a_weight_is_written_as_kueue_would_rewrite_it(weight: int, written: str, register: Register) -> None:
    [queue] = specs(register, "ClusterQueue", queues=[queue_args(weight=weight)])

    assert queue["fairSharing"] == {"weight": written}


@pytest.mark.parametrize("stop,policy", [("none", "None"), ("hold", "Hold"), ("drain", "HoldAndDrain")])
def test_a_queue_is_held_or_drained_for_maintenance(stop: str, policy: str, register: Register) -> None:
    [queue] = specs(register, "ClusterQueue", queues=[queue_args(stop=stop)])

    assert queue["stopPolicy"] == policy


@pytest.mark.parametrize("moves_on,when_preempting", [(True, "TryNextFlavor"), (False, "MayStopSearch")])
def test_idle_gpus_of_an_earlier_flavor_come_before_later_ones_and_preemption_waits_if_quota_moves_work_on(
    register: Register, when_preempting: str, *, moves_on: bool
) -> None:
    [queue] = specs(register, "ClusterQueue", queues=[queue_args(moves_on=moves_on)])

    assert queue["flavorFungibility"] == {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": when_preempting}


def test_an_admission_check_applies_to_the_named_flavors_and_no_others(register: Register) -> None:
    both = [quota_args(2), quota_args(8, flavor="h100-queued")]
    queue = queue_args(quotas=both, admission_checks=[{"name": "dws", "flavors": ["h100-queued"]}])

    [spec] = specs(register, "ClusterQueue", flavors=[flavor_args(), flavor_args("h100-queued")], queues=[queue])

    assert spec["admissionChecksStrategy"] == {"admissionChecks": [{"name": "dws", "onFlavors": ["h100-queued"]}]}


def test_limits_are_on_every_resource_and_omitted_without_one(register: Register) -> None:
    [queue] = specs(register, "ClusterQueue", queues=[queue_args(quotas=[quota_args(2, borrowing_limit=1, lending_limit=0)])])

    assert queue["resourceGroups"][0]["flavors"][0]["resources"] == [
        {"name": "cpu", "nominalQuota": "8", "borrowingLimit": "4", "lendingLimit": "0"},
        {"name": "memory", "nominalQuota": "32Gi", "borrowingLimit": "16Gi", "lendingLimit": "0Gi"},
        {"name": "nvidia.com/gpu", "nominalQuota": "2", "borrowingLimit": "1", "lendingLimit": "0"},
    ]


def test_a_flavor_omits_empty_fields_as_the_server_does(register: Register) -> None:
    [flavor] = specs(register, "ResourceFlavor", flavors=[flavor_args(tolerations=[])])

    assert flavor == {"nodeLabels": {"karpenter.sh/capacity-type": "spot"}}


def test_a_flavor_has_its_taints_and_the_topology_of_its_pods(register: Register) -> None:
    taint = {"key": "flexspot.dev/class", "value": "training", "effect": "NoSchedule"}

    [flavor] = specs(register, "ResourceFlavor", flavors=[flavor_args(node_taints=[taint], topology="gke-network")])

    assert (flavor["nodeTaints"], flavor["topologyName"]) == ([taint], "gke-network")


def test_a_tree_of_cohorts_is_declared_with_weights_and_a_root_that_owns_nothing_is_not(register: Register) -> None:
    tree: list[dict[str, Any]] = [
        {"name": "ai-platform", "parent": None, "quotas": []},
        {"name": "research", "parent": "ai-platform", "quotas": [quota_args(1)], "weight": 2},
    ]

    [cohort] = specs(register, "Cohort", cohorts=tree)

    assert (cohort["parentName"], cohort["fairSharing"]) == ("ai-platform", {"weight": "2"})
    assert cohort["resourceGroups"][0]["flavors"][0]["resources"][2] == {"name": "nvidia.com/gpu", "nominalQuota": "1"}


def test_unowned_quota_belongs_to_the_root_which_has_no_weight(register: Register) -> None:
    [cohort] = specs(register, "Cohort", cohorts=[{"name": "ai-platform", "parent": None, "quotas": [quota_args(2)]}])

    assert cohort.keys() == {"resourceGroups"}


def test_both_queues_of_a_team_have_its_labels(register: Register) -> None:
    registered = register(lambda: Queues("queues", queues_args()))

    for kind in ("ClusterQueue", "LocalQueue"):
        [queue] = registered.of(f"{KUEUE}:{kind}")
        assert queue["metadata"]["labels"] == {**LABELS, "flexspot.dev/team": "red"}
    assert registered.of(f"{KUEUE}:LocalQueue")[0]["spec"] == {"clusterQueue": "red"}


MANY = {f"key-{number}": "x" for number in range(9)}

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"flavors": [flavor_args("a100")]}, "queue red: flavor of a quota (is l4-spot): is not in flavors; use one of a100"),
    (
        {"cohorts": [{"name": "ai-platform", "parent": None, "quotas": [quota_args(1, flavor="t4")]}]},
        "cohort ai-platform: flavor of a quota (is t4)",
    ),
    (
        {"cohorts": [{"name": "other", "parent": None, "quotas": []}]},
        "queue red: cohort (is ai-platform): is not in cohorts; use one of other",
    ),
    ({"cohorts": [{"name": "ai-platform", "parent": "acme", "quotas": []}]}, "cohort ai-platform: parent (is acme): is not"),
    ({"flavors": [flavor_args(node_labels=MANY)]}, "flavor l4-spot: node_labels: 9 exceed Kueue's limit of 8"),
    (
        {"flavors": [flavor_args(node_labels={}, topology="t")]},
        "flavor l4-spot: topology (is t): a flavor with a topology needs node_labels",
    ),
    ({"queues": [queue_args(quotas=[])]}, "queue red: quotas (is empty): a queue needs at least one; add a quota, of 0 GPUs if it"),
    ({"queues": [queue_args(weight=0)]}, "queue red: weight (is 0): must be at least 1"),
    ({"cohorts": [{"name": "ai-platform", "parent": None, "quotas": [], "weight": -1}]}, "cohort ai-platform: weight (is -1)"),
    (
        {"flavors": [flavor_args(resource="amd.com/gpu")]},
        "resource (is amd.com/gpu): must be one of nvidia.com/gpu, aws.amazon.com/neuron, google.com/tpu",
    ),
    ({"queues": [queue_args(stop="Hold")]}, "queue red: stop (is 'Hold'): must be one of none, hold, drain"),
    (
        {"queues": [queue_args(admission_checks=[{"name": "dws", "flavors": ["h100"]}])]},
        "queue red: admission_checks (is dws): the queue has no quota of",
    ),
]
"""Changed arguments, and the message about them."""


@pytest.mark.parametrize("changes,problem", REFUSED)
def test_queues_that_kueue_would_reject_or_keep_inactive_are_refused_before_anything_is_registered(
    changes: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(Queues, "queues", queues_args(**changes))


def test_the_names_of_its_queues_are_its_output(outputs: Outputs) -> None:
    assert outputs(lambda: Queues("queues", queues_args())) == {"cluster_queues": ["red"]}


NEURON = "aws.amazon.com/neuron"
PARTS = ("aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice")
"""Other names under which the plugin offers the same devices."""


def amounts(spec: dict[str, Any], field: str = "nominalQuota") -> dict[str, dict[str, str]]:
    """Return the quota of each resource in each flavor."""
    [group] = spec["resourceGroups"]
    return {flavor["name"]: {each["name"]: each[field] for each in flavor["resources"] if field in each} for flavor in group["flavors"]}


def test_a_queue_of_gpus_and_neuron_devices_counts_each_only_in_its_own_flavors(register: Register) -> None:
    # cpu and memory may be in only one group of resources, in which every flavor has every resource (Kueue v0.19, its webhook).
    queue = queue_args(quotas=[quota_args(2, borrowing_limit=1), quota_args(16, borrowing_limit=8, flavor="trn-spot")])

    [spec] = specs(register, "ClusterQueue", flavors=[flavor_args(), flavor_args("trn-spot", resource=NEURON)], queues=[queue])

    covered = ["cpu", "memory", "nvidia.com/gpu", NEURON, *PARTS]
    assert spec["resourceGroups"][0]["coveredResources"] == covered
    assert [each["name"] for each in spec["resourceGroups"][0]["flavors"][1]["resources"]] == covered
    none = dict.fromkeys(PARTS, "0")
    assert amounts(spec) == {
        "l4-spot": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2", NEURON: "0", **none},
        "trn-spot": {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "0", NEURON: "16", **none},
    }
    borrowed = amounts(spec, "borrowingLimit")
    assert (borrowed["l4-spot"][NEURON], borrowed["trn-spot"]["nvidia.com/gpu"]) == ("0", "0")


def test_a_queue_without_a_share_of_devices_has_a_quota_of_zero_for_them(register: Register) -> None:
    # Kueue admits resources that a queue does not cover: tests/lab/test_neuron_queues.py.
    [spec] = specs(register, "ClusterQueue", flavors=[flavor_args(), flavor_args("trn-spot", resource=NEURON)])

    assert amounts(spec) == {"l4-spot": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2", **dict.fromkeys((NEURON, *PARTS), "0")}}


def test_a_flavor_of_launchers_has_no_devices(register: Register) -> None:
    quotas = [quota_args(0, flavor="launchers"), quota_args(16, flavor="trn-spot")]
    flavors = [flavor_args("launchers", resource=None, tolerations=[]), flavor_args("trn-spot", resource=NEURON)]

    [spec] = specs(register, "ClusterQueue", flavors=flavors, queues=[queue_args(quotas=quotas)])

    assert {name: amounts(spec)["launchers"][name] for name in ("nvidia.com/gpu", NEURON)} == {"nvidia.com/gpu": "0", NEURON: "0"}
    assert (amounts(spec)["trn-spot"]["nvidia.com/gpu"], amounts(spec)["trn-spot"][NEURON]) == ("0", "16")
