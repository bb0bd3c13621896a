"""How much vCPU and memory belongs to GPUs."""

from __future__ import annotations

from capacity.catalog.machines import Cloud, machines_of
from capacity.plan.model import Amount
from capacity.plan.resolve import node_amount, with_gpus

AWS = machines_of(Cloud.AWS)


def test_gpus_come_with_vcpu_and_memory_in_proportion() -> None:
    assert with_gpus([Amount(8, 192, 2_097_152)], 2) == Amount(2, 48, 524_288)
    assert with_gpus([Amount(8, 192, 2_097_152)], 0) == Amount(0, 0, 0)


def test_parts_of_a_vcpu_or_mebibyte_are_rounded_up() -> None:
    assert with_gpus([Amount(3, 10, 100)], 1) == Amount(1, 4, 34)
    assert with_gpus([Amount(3, 10, 100)], 2) == Amount(2, 7, 67)


def test_of_several_kinds_of_node_each_figure_is_that_of_the_one_with_most_for_a_gpu() -> None:
    assert with_gpus([Amount(4, 48, 400), Amount(1, 64, 50)], 4) == Amount(4, 256, 400)


def test_a_node_of_several_machines_counts_as_the_largest_in_each_way() -> None:
    assert node_amount([AWS["g6.xlarge"], AWS["g6.4xlarge"], AWS["g6.2xlarge"]], 1) == Amount(1, 16, 65_536)
