"""The shipped machine catalog and price book of GKE: what its figures must agree with."""

from __future__ import annotations

import pytest

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Cloud, machines_of, unserved_family
from capacity.catalog.price_book import prices_of

MACHINES = machines_of(Cloud.GCP)
PRICES = prices_of(Cloud.GCP).prices


def test_a_machine_without_local_disks_is_the_other_one_in_all_else() -> None:
    pairs = [(machine, MACHINES[name.removesuffix("-nolssd")]) for name, machine in MACHINES.items() if name.endswith("-nolssd")]

    assert len(pairs) == 13
    for bare, whole in pairs:
        assert whole.bundled_local_ssd_disks > 0
        told = {"name": whole.name, "local_ssd_gb": whole.local_ssd_gb, "local_ssd_disk_gb": whole.local_ssd_disk_gb}
        assert bare.model_copy(update={**told, "zones": whole.zones, "source": whole.source}) == whole


@pytest.mark.parametrize("name,word", [("g4-standard-12", "part of a GPU"), ("ct4p-hightpu-4t", "TPUs"), ("tpu7x-standard-4t", "TPUs")])
def test_parts_of_gpus_and_tpus_of_other_generations_are_refused_with_the_reason(name: str, word: str) -> None:
    unserved = unserved_family(Cloud.GCP, name)

    assert unserved is not None
    assert word in unserved.problem
    assert unserved_family(Cloud.GCP, "g4-standard-96") is None


def test_a_machine_that_is_not_sold_on_demand_has_no_such_price() -> None:
    unsold = {name for name, each in machines_of(Cloud.GCP).items() if not each.on_demand}

    assert unsold == {f"a3-highgpu-{gpus}g{disks}" for gpus in (1, 2, 4) for disks in ("", "-nolssd")}
    assert not [key for key in PRICES if key[0] in unsold and key[2] is CapacityType.ON_DEMAND]
