"""How many vCPU a machine of EC2 has by the rule of its name, held against EC2's own answer as moto recorded it."""

from __future__ import annotations

from moto.ec2.models.instance_types import INSTANCE_TYPES

from capacity.catalog.machine_list import vcpu_of
from capacity.catalog.machines import Cloud


def test_the_rule_by_size_says_what_ec2_says_wherever_it_says_anything() -> None:
    recorded = {name: each["VCpuInfo"]["DefaultVCpus"] for name, each in INSTANCE_TYPES.items()}
    said = {name: vcpu for name in recorded if (vcpu := vcpu_of(Cloud.AWS, name)) is not None}

    assert len(said) > 500
    assert {name: (vcpu, recorded[name]) for name, vcpu in said.items() if vcpu != recorded[name]} == {}
