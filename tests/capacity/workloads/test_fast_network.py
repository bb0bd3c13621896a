"""Pods that train together on nodes with EFA or GPUDirect have network interfaces. No pod requests interfaces that its nodes lack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from gpudirect_stack import gpudirect_pool, gpudirect_settings
from plan_settings import eks, plan_of, pool, team
from workload_plans import IMAGE, job_of, objects, pod_of, pools_of, variables

from flexspot.capacity.catalog.gke_accelerators import CONTAINER_FOLDER
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import WorkloadError

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan


EFA = "vpc.amazonaws.com/efa"
NOTE = "flexspot.dev/ordinary-network"
GANG: dict[str, Any] = {"pods": 2, "gpus": 8}


def asked(pod: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the interfaces that the pod's container requests, and its limit."""
    [container] = pod["containers"]
    return container["resources"]["requests"].get(EFA), container["resources"]["limits"].get(EFA)


def plan_with(*pools: tuple[str, str]) -> Plan:
    """Return an EKS plan of one team with EFA pools, each given by its name and machine."""
    made = [pool(name, machine, "spot", 4, "training", efa=True, zones=["us-east-1a"]) for name, machine in pools]
    return plan_of(eks(*made, teams=[team("red", shares={name: 8 for name, _ in pools})]))


def pod_on(plan: Plan, **fields: Any) -> dict[str, Any]:
    written = {"name": "bert", "team": "red", "workload_class": "training", "image": IMAGE, **fields}
    [job] = objects_of(plan, "checkpointed-job", written)
    return job["spec"]["template"]["spec"]


def test_a_gang_asks_for_the_interfaces_of_its_nodes_where_all_its_pools_have_them() -> None:
    pod = pod_of("prod-eks", team="search", **GANG)

    assert pools_of(pod) == ["h100-reserved"]
    assert asked(pod) == ("32", "32")
    found = variables(pod)
    # Karpenter creates no node for huge pages.
    assert (found["FI_PROVIDER"], found["FI_EFA_USE_HUGE_PAGE"]) == ("efa", "0")
    assert not any(key.startswith("hugepages") for key in pod["containers"][0]["resources"]["requests"])


def test_a_gang_with_some_pools_without_efa_says_so_and_how_to_get_it() -> None:
    job = job_of("prod-eks", **GANG)

    pod = job["spec"]["template"]["spec"]
    assert (pools_of(pod), asked(pod)) == (["h100-reserved", "a100-spot"], (None, None))
    assert job["metadata"]["annotations"] == {
        NOTE: "TCP, because a100-spot has no EFA; fast_network: true requests EFA and uses only h100-reserved"
    }


def test_a_request_for_efa_excludes_the_pools_without() -> None:
    job = job_of("prod-eks", **GANG, fast_network=True)

    pod = job["spec"]["template"]["spec"]
    assert (pools_of(pod), asked(pod)) == (["h100-reserved"], ("32", "32"))
    assert "annotations" not in job["metadata"]


def test_a_gang_that_declines_efa_requests_none_and_has_no_note() -> None:
    job = job_of("prod-eks", **GANG, team="search", fast_network=False)

    assert asked(job["spec"]["template"]["spec"]) == (None, None)
    assert "FI_PROVIDER" not in variables(job["spec"]["template"]["spec"])
    assert "annotations" not in job["metadata"]


@pytest.mark.parametrize("kind,fields", [("checkpointed-job", {}), ("queued-job", {"pods": 2, "workload_class": "training"})])
def test_pods_that_do_not_train_together_ask_for_none_by_themselves(kind: str, fields: dict[str, Any]) -> None:
    assert asked(pod_of("prod-eks", kind, team="search", gpus=8, **fields)) == (None, None)


def test_a_pod_has_the_share_of_the_interfaces_that_its_gpus_are_of_the_node() -> None:
    plan = plan_with(("h100", "p5.48xlarge"))

    assert asked(pod_on(plan, pods=2, gpus=4)) == ("16", "16")
    assert asked(pod_on(plan, gpus=1, fast_network=True)) == ("4", "4")


def test_on_pools_with_different_numbers_of_interfaces_it_asks_for_what_all_have() -> None:
    plan = plan_with(("h100", "p5.48xlarge"), ("a100", "p4d.24xlarge"))

    assert asked(pod_on(plan, **GANG)) == ("4", "4")


@pytest.mark.parametrize(
    "stack,fields,message",
    [
        ("prod-eks", {"workload_class": "best-effort"}, "the stack has them in h100-reserved (32 for 8 GPUs, for training); leave it out"),
        ("prod-gke", {}, "which the namespaces of teams refuse); leave it out for the nodes' ordinary network"),
        ("local", {}, "needs a pool with EFA interfaces for a pod of 1 GPU(s), and class training has none"),
    ],
)
def test_a_request_for_efa_without_such_a_pool_is_refused_with_the_pools_that_have_it(
    stack: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(WorkloadError) as refused:
        objects(stack, "queued-job", fast_network=True, **fields)
    [problem] = refused.value.problems
    assert str(problem).startswith("fast_network (is true): ")
    assert message in str(problem)


def test_a_pod_too_small_for_a_whole_interface_has_none() -> None:
    plan = plan_with(("a100", "p4d.24xlarge"))

    assert asked(pod_on(plan, pods=2, gpus=1)) == (None, None)
    with pytest.raises(
        WorkloadError, match=r"for a pod of 1 GPU\(s\), and class training has none; the stack has them in a100 \(4 for 8 GPUs"
    ):
        pod_on(plan, pods=2, gpus=1, fast_network=True)


PLAN = plan_of(gpudirect_settings())
INTERFACES, FIRST = "networking.gke.io/interfaces", "networking.gke.io/default-interface"


def job(kind: str = "checkpointed-job", **fields: Any) -> dict[str, Any]:
    written = {"name": "bert", "team": "nlp", "workload_class": "training", "image": IMAGE, "pods": 2, "gpus": 8, **fields}
    return objects_of(PLAN, kind, written)[0]


def template_of(made: dict[str, Any]) -> dict[str, Any]:
    return made["spec"]["template"]


def interfaces(template: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the interface and network of each, as GKE reads them."""
    return [
        (each["interfaceName"], each["network"]) for each in json.loads(template["metadata"].get("annotations", {}).get(INTERFACES, "[]"))
    ]


def test_a_gang_that_asks_for_it_has_the_pools_with_it_and_all_networks_of_a_node() -> None:
    template = template_of(job(fast_network=True))

    assert pools_of(template["spec"]) == ["b200", "h200"]
    # As in Google's own sample, container-engine-accelerators, gpudirect-rdma/nccl-test.yaml at 0920249dd823 (read 2026-11-26).
    assert interfaces(template) == [("eth0", "default"), *((f"eth{number + 2}", f"rdma-{number}") for number in range(8))]
    assert template["metadata"]["annotations"][FIRST] == "eth0"
    found = variables(template["spec"])
    assert (found["NCCL_NET"], found["LD_LIBRARY_PATH"]) == ("gIB", f"{CONTAINER_FOLDER}/lib64")
    assert "NCCL_TUNER_CONFIG_PATH" not in found, "the two machines have two files"


@pytest.mark.parametrize("model,pool,tuner", [("h200", "h200", "tuner_config_a3u.txtpb"), ("b200", "b200", "tuner_config_a4.txtpb")])
def test_nccl_reads_the_tuner_file_of_its_machine(model: str, pool: str, tuner: str) -> None:
    template = template_of(job(gpu_models=(model,)))

    assert (pools_of(template["spec"]), len(interfaces(template))) == ([pool], 9), "all of its pools have it, so no request is needed"
    assert variables(template["spec"])["NCCL_TUNER_CONFIG_PATH"] == f"/usr/local/nvidia/gib/configs/{tuner}"


def test_a_gang_with_some_pools_without_gpudirect_says_so_and_how_to_get_it() -> None:
    made = job()

    assert interfaces(template_of(made)) == []
    assert made["metadata"]["annotations"][NOTE].endswith(
        "has no GPUDirect; fast_network: true requests GPUDirect and uses only b200, h200"
    )


def test_pods_of_a_part_of_a_node_have_none_because_its_cards_are_all_for_one_pod() -> None:
    assert interfaces(template_of(job(gpus=4, gpu_models=("h200",)))) == []
    with pytest.raises(
        WorkloadError, match=r"for a pod of 4 GPU\(s\), and class training has none; the stack has them in b200 \(8 for 8 GPUs"
    ):
        job(gpus=4, fast_network=True)


@pytest.mark.parametrize(
    "kind,fields", [("checkpointed-job", {"pods": 1}), ("queued-job", {}), ("checkpointed-job", {"fast_network": False})]
)
def test_pods_that_do_not_train_together_or_do_not_want_it_have_none(kind: str, fields: dict[str, Any]) -> None:
    template = template_of(job(kind, gpu_models=("h200",), **fields))

    assert (interfaces(template), "NCCL_NET" in variables(template["spec"])) == ([], False)


def test_the_authors_variables_override_those_of_the_network() -> None:
    template = template_of(job(fast_network=True, env={"LD_LIBRARY_PATH": "/opt/lib:/usr/local/nvidia/lib64"}))

    assert variables(template["spec"])["LD_LIBRARY_PATH"].startswith("/opt/lib")


@pytest.mark.parametrize(
    "machine,message",
    [
        ("a3-megagpu-8g", r"the stack has them in no pool \(.*h200, a3-megagpu-8g, cannot: its GPUDirect .* needs a daemon with NET_ADMIN"),
        ("a3-ultragpu-8g", r"in no pool \(.*h200, a3-ultragpu-8g, has it with `network: gpudirect`"),
    ],
)
def test_a_request_for_gpudirect_without_such_a_pool_names_pools_that_could_have_it(machine: str, message: str) -> None:
    plan = plan_of(gpudirect_settings(gpudirect_pool("h200", machine, network="ordinary")))
    written = {"name": "bert", "team": "nlp", "workload_class": "training", "image": IMAGE, "pods": 2, "gpus": 8, "fast_network": True}

    with pytest.raises(WorkloadError, match=message):
        objects_of(plan, "checkpointed-job", written)
