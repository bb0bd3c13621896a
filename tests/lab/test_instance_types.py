"""What Karpenter's KWOK provider is told to offer."""

from __future__ import annotations

import json
from typing import Any

from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.price_book import prices_of
from lab.parts.karpenter import REGION, instance_types_json


def offered() -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(instance_types_json())}


def test_every_machine_that_has_a_price_in_the_labs_region_is_offered_with_its_gpus() -> None:
    types = offered()

    priced = {name for name, region, _ in prices_of(Cloud.AWS).prices if region == REGION}
    assert set(types) == set(machines_of(Cloud.AWS)) & priced
    assert len(types) > 40
    assert types["g6.xlarge"]["resources"] == {"cpu": "4", "memory": "16384Mi", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "1"}


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
