"""MIG partitions of GKE: what its device plugin takes, of GPUs that the catalog has."""

from __future__ import annotations

import re

import pytest

from capacity.catalog.gke_accelerators import partitions_of
from capacity.catalog.machines import Cloud, Gpu, machines_of

GPUS: dict[str, Gpu] = {each.gpu.name: each.gpu for each in machines_of(Cloud.GCP).values() if each.gpu and not each.tpu_topology}
SLICES = 7
"""Of compute, in a GPU that can be divided."""


@pytest.mark.parametrize("name", sorted(GPUS))
def test_the_partitions_of_a_gpu_fit_into_it(name: str) -> None:
    gigabytes = GPUS[name].memory_mib / 1024

    for size, count in partitions_of(name).items():
        compute, memory = map(int, re.findall(r"\d+", size))
        assert count * compute <= SLICES, size
        # Names round a part of the memory up.
        assert count * (memory - 1) <= gigabytes, size
