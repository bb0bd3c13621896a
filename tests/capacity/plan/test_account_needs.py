"""The quotas of EC2 that a platform's ceilings count against, added up by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from settings_documents import changed

from capacity.catalog.aws_quotas import Market, quota_of_machine
from capacity.catalog.machines import Cloud, machines_of
from capacity.plan.account_needs import QuotaNeed, quota_needs
from capacity.plan.build import build_plan
from capacity.settings.platform import EksSettings
from capacity.settings.stack_file import parse_settings

STANDARD, G, P = "L-1216C47A", "L-DB2E81BA", "L-417A185B"
STANDARD_SPOT, G_SPOT, P4_SPOT, P5_SPOT = "L-34B43A08", "L-3819A6DF", "L-7212CCBC", "L-C4BD4855"
ADDRESSES = "L-0263D0A3"


def needs(**changes: Any) -> dict[str | None, QuotaNeed]:
    settings = parse_settings(changed("eks", {path.replace("__", "."): value for path, value in changes.items()}), "settings")
    assert isinstance(settings, EksSettings)
    return {each.quota.code if each.quota else None: each for each in quota_needs(build_plan(settings), settings)}


def pool(name: str, machine: str, capacity_type: str = "spot", max_nodes: int = 2, **options: Any) -> dict[str, Any]:
    return {"name": name, "machine": machine, "capacity_type": capacity_type, "max_nodes": max_nodes, "serves": ["training"], **options}


def test_a_spot_pool_counts_its_nodes_of_the_largest_machine_against_spot() -> None:
    found = needs(pools__0=pool("l4-spot", "g6.xlarge", max_nodes=4, alternatives=["g6.2xlarge"]))

    assert [(use.what, use.amount) for use in found[G_SPOT].uses] == [("l4-spot", 4 * 8)]
    assert G not in found


def test_on_demand_and_its_reservations_count_against_on_demand_and_a_capacity_block_against_nothing() -> None:
    odcr = {"ids": ["cr-0a1b2c3d4e5f60718"]}
    block = {"kind": "capacity-block", "ids": ["cr-0b1b2c3d4e5f60718"]}
    found = needs(
        pools__1=pool("kept", "g6.2xlarge", "reserved", 3, reservation=odcr),
        pools__2=pool("bought", "g6.2xlarge", "on-demand", 1) | {"serves": ["inference"]},
        pools__3=pool("block", "p5.48xlarge", "reserved", 2, reservation=block, zones=["us-east-1a"]),
    )

    assert {use.what: use.amount for use in found[G].uses} == {"kept": 3 * 8, "bought": 8}
    assert P not in found


def test_p4_and_p5_on_spot_have_quotas_of_their_own_and_nobody_knows_which_is_p6s() -> None:
    found = needs(pools__1=pool("a100", "p4d.24xlarge"), pools__2=pool("h100", "p5.48xlarge"), pools__3=pool("b200", "p6-b200.48xlarge"))

    assert (found[P4_SPOT].amount, found[P5_SPOT].amount, found[None].amount) == (2 * 96, 2 * 192, 2 * 192)
    assert found[None].beyond_default


def test_system_nodes_count_with_those_that_are_there_while_they_are_replaced() -> None:
    found = needs(cluster__system_pool={"machine": "m6i.xlarge", "min_nodes": 2, "max_nodes": 3}, cluster__other_work={"max_vcpu": 32})

    zones = 2
    assert {use.what: use.amount for use in found[STANDARD].uses} == {
        "other-work": 32,
        "system nodes": 3 * 4,
        "system nodes while they are replaced": 2 * zones * 4,
    }
    assert found[STANDARD_SPOT].amount == 32
    assert found[ADDRESSES].amount == zones


def test_a_machine_that_the_stack_describes_counts_as_it_is_described() -> None:
    described = {"name": "g9.xlarge", "vcpu": 6, "memory_mib": 16384, "gpu": {"name": "l4", "count": 1, "memory_mib": 22888}}
    found = needs(machines=[described], pools__1=pool("next", "g9.xlarge", max_nodes=3) | {"serves": ["interactive"]})

    assert {use.what: use.amount for use in found[G_SPOT].uses}["next"] == 3 * 6


def test_what_is_there_already_counts_against_nothing_of_ours() -> None:
    found = needs(cluster__existing="theirs", cluster__other_work={"max_vcpu": 0})

    assert found.keys() == {G_SPOT}


def test_each_gateway_needs_an_address_and_one_for_all_needs_one() -> None:
    zones = [f"us-east-1{letter}" for letter in "abcdf"]
    private, public = [f"10.0.{32 * n}.0/19" for n in range(5)], [f"10.0.{200 + n}.0/24" for n in range(5)]

    five = needs(zones=zones, network={"private_cidrs": private, "public_cidrs": public})[ADDRESSES]
    single = needs(zones=zones, network={"private_cidrs": private, "public_cidrs": public, "nat": "single"})[ADDRESSES]

    assert (five.amount, five.beyond_default, single.amount) == (5, False, 1)


@pytest.mark.parametrize("market", Market)
def test_every_machine_of_the_catalog_counts_against_the_quota_that_names_its_family(market: Market) -> None:
    """The names are AWS's own, and say which families they are of."""
    without: list[str] = []
    for name in machines_of(Cloud.AWS):
        quota = quota_of_machine(name, market)
        if quota is None:
            without.append(name)
            continue
        family = name.partition(".")[0]
        words = re.findall(r"\b(?:[A-Z]\d?|Inf|Trn)\b", quota.name)
        assert any(family.upper().startswith(word.upper()) for word in words), f"{name} is counted by {quota.name}"
    assert [name for name in without if not (market is Market.SPOT and name.startswith("p6-"))] == []
