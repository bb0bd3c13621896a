"""Pods that train together on GKE nodes with GPUDirect name its networks, and no pod names a network that its node may not have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gpudirect_stack import gpudirect_pool, gpudirect_settings
from plan_settings import plan_of
from workload_plans import IMAGE, pools_of, variables

from capacity.catalog.gpudirect import CONTAINER_FOLDER
from capacity.workloads.kinds import objects_of
from capacity.workloads.requests import WorkloadError

PLAN = plan_of(gpudirect_settings())
INTERFACES, FIRST = "networking.gke.io/interfaces", "networking.gke.io/default-interface"
NOTE = "flexspot.dev/ordinary-network"


def job(kind: str = "checkpointed-job", **fields: Any) -> dict[str, Any]:
    written = {"name": "bert", "team": "nlp", "workload_class": "training", "image": IMAGE, "pods": 2, "gpus": 8, **fields}
    return objects_of(PLAN, kind, written)[0]


def template_of(made: dict[str, Any]) -> dict[str, Any]:
    return made["spec"]["template"]


def interfaces(template: dict[str, Any]) -> list[tuple[str, str]]:
    """Interface and network of each, as GKE reads them."""
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
def test_on_one_kind_of_machine_nccl_is_told_its_file(model: str, pool: str, tuner: str) -> None:
    template = template_of(job(gpu_models=(model,)))

    assert (pools_of(template["spec"]), len(interfaces(template))) == ([pool], 9), "all of its pools have it: nobody needs to ask"
    assert variables(template["spec"])["NCCL_TUNER_CONFIG_PATH"] == f"/usr/local/nvidia/gib/configs/{tuner}"


def test_where_some_of_its_pools_have_none_it_says_so_and_how_to_have_it() -> None:
    made = job()

    assert interfaces(template_of(made)) == []
    assert made["metadata"]["annotations"][NOTE].endswith(
        "has no GPUDirect; fast_network: true asks for GPUDirect and takes b200, h200 alone"
    )


def test_pods_of_a_part_of_a_node_have_none_because_its_cards_are_all_for_one_pod() -> None:
    assert interfaces(template_of(job(gpus=4, gpu_models=("h200",)))) == []
    with pytest.raises(WorkloadError, match=r"none with one for a pod of 4 GPU\(s\); the stack has them in b200 \(8 for 8 GPUs"):
        job(gpus=4, fast_network=True)


@pytest.mark.parametrize(
    "kind,fields", [("checkpointed-job", {"pods": 1}), ("queued-job", {}), ("checkpointed-job", {"fast_network": False})]
)
def test_pods_that_do_not_train_together_or_do_not_want_it_have_none(kind: str, fields: dict[str, Any]) -> None:
    template = template_of(job(kind, gpu_models=("h200",), **fields))

    assert (interfaces(template), "NCCL_NET" in variables(template["spec"])) == ([], False)


def test_a_variable_of_the_authors_goes_before_those_of_the_network() -> None:
    template = template_of(job(fast_network=True, env={"LD_LIBRARY_PATH": "/opt/lib:/usr/local/nvidia/lib64"}))

    assert variables(template["spec"])["LD_LIBRARY_PATH"].startswith("/opt/lib")


@pytest.mark.parametrize(
    "machine,told",
    [
        ("a3-megagpu-8g", r"the stack has them in no pool \(.*h200, a3-megagpu-8g, cannot: its GPUDirect .* needs a daemon with NET_ADMIN"),
        ("a3-ultragpu-8g", r"in no pool \(.*h200, a3-ultragpu-8g, has it with `network: gpudirect`"),
    ],
)
def test_work_that_asks_for_it_where_no_pool_has_it_is_told_which_could_and_why_others_cannot(machine: str, told: str) -> None:
    plan = plan_of(gpudirect_settings(gpudirect_pool("h200", machine, network="ordinary")))
    written = {"name": "bert", "team": "nlp", "workload_class": "training", "image": IMAGE, "pods": 2, "gpus": 8, "fast_network": True}

    with pytest.raises(WorkloadError, match=told):
        objects_of(plan, "checkpointed-job", written)
