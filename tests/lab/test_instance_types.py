"""The machines that Karpenter's KWOK provider offers."""

from __future__ import annotations

import json
from typing import Any

from program_declarations import as_shipped

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.lab.parts import REGION, instance_types_json


def offered() -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(instance_types_json())}


def test_every_machine_that_has_a_price_in_the_labs_region_is_offered_with_its_gpus() -> None:
    types = offered()

    priced = {name for name, region, _ in prices_of(Vendor.AWS).prices if region == REGION}
    assert set(types) == set(machines_of(Vendor.AWS)) & priced
    assert len(types) > 40
    assert types["g6.xlarge"]["resources"] == {"cpu": "4", "memory": "16384Mi", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "1"}
    assert types["p4d.24xlarge"]["resources"]["vpc.amazonaws.com/efa"] == "4"


def test_a_machine_is_offered_once_per_zone_and_capacity_type_at_its_price() -> None:
    offerings = offered()["g6.xlarge"]["offerings"]
    places = [
        tuple(
            requirement["values"][0]
            for requirement in offering["Requirements"]
            if requirement["key"] in {"karpenter.sh/capacity-type", "topology.kubernetes.io/zone"}
        )
        for offering in offerings
    ]

    assert len(set(places)) == len(places) == 2 * 5
    prices = {place[0]: offering["Price"] for place, offering in zip(places, offerings, strict=True)}
    assert prices == {"spot": 0.3659, "on-demand": 0.8048}


def test_offerings_carry_the_labels_that_karpenter_knows_before_a_node_boots() -> None:
    [name] = {
        requirement["values"][0]
        for offering in offered()["g5.xlarge"]["offerings"]
        for requirement in offering["Requirements"]
        if requirement["key"] == "karpenter.k8s.aws/instance-gpu-name"
    }

    assert name == "a10g"


def meets(offering: dict[str, Any], requirement: dict[str, Any]) -> bool:
    """Return whether the labels of an offering are those that a NodePool requires."""
    labels = {each["key"]: each["values"][0] for each in offering["Requirements"]} | {"kubernetes.io/arch": "amd64"}
    value, wanted = labels.get(requirement["key"]), requirement["values"]
    match requirement["operator"]:
        case "In":
            return value in wanted
        case "Gt":
            return value is not None and int(value) > int(wanted[0])
        case "Lt":
            return value is not None and int(value) < int(wanted[0])
        case _:
            raise AssertionError(requirement)


def test_every_node_pool_of_the_local_stack_has_machines() -> None:
    pools = as_shipped("local").inputs_of("kubernetes:karpenter.sh/v1:NodePool")
    names = {each["name"]: each for each in offered().values()}
    found = {
        pool["metadata"]["name"]: {
            name
            for name, machine in names.items()
            for offering in machine["offerings"]
            if all(
                meets(offering | {"Requirements": [*offering["Requirements"], *_of_machine(name)]}, each)
                for each in pool["spec"]["template"]["spec"]["requirements"]
            )
        }
        for pool in pools
    }

    assert {"l4-spot", "other-work"} <= found.keys()
    assert [name for name, machines in found.items() if not machines] == []


def _of_machine(name: str) -> list[dict[str, Any]]:
    return [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]}]
