"""Zones of AWS by name and by id, against what EC2 offered under both."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import moto
import pytest

from capacity.catalog.machines import Cloud, machines_of, zone_id_prefix
from capacity.catalog.zone_ids import is_zone_id

OFFERINGS = Path(moto.__file__).parent / "ec2/resources/instance_type_offerings/availability-zone-id"
MACHINES = machines_of(Cloud.AWS)
REGIONS = sorted({region for machine in MACHINES.values() for region in machine.zones})


@pytest.mark.parametrize("region", REGIONS)
def test_the_zones_of_each_machine_by_id_are_those_that_ec2_offers_it_in(region: str) -> None:
    recorded = json.loads(gzip.decompress((OFFERINGS / f"{region}.json.gz").read_bytes()))
    offered: dict[str, set[str]] = {}
    for each in recorded:
        offered.setdefault(each["InstanceType"], set()).add(each["Location"])

    known = {name: set(machine.zone_ids[region]) for name, machine in MACHINES.items() if region in machine.zones}

    assert known == {name: {zone for zone in offered[name] if is_zone_id(zone)} for name in known}


@pytest.mark.parametrize("file", sorted(OFFERINGS.iterdir()), ids=lambda file: file.name.partition(".")[0])
def test_the_ids_of_every_regions_zones_begin_as_its_name_says(file: Path) -> None:
    region = file.name.partition(".")[0]
    zones = {each["Location"] for each in json.loads(gzip.decompress(file.read_bytes()))}

    # A Local Zone's id names its city: use1-bos1-az1.
    assert {zone for zone in zones if is_zone_id(zone)} == {zone for zone in zones if zone.startswith(zone_id_prefix(region))} != set()
