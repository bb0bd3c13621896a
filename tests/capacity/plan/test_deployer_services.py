"""AWS services that the deploying role needs: those of every type that a stack declares, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from program_declarations import declared, shipped

from flexspot.capacity.plan.needs import deployer_services
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.settings.stack_file import parse_settings

ACTIONS = {"efs": "elasticfilesystem", "vpc": "ec2"}
"""Prefixes of the actions of a package, if they differ from its name."""
EXISTING: dict[str, Any] = {"existing": "theirs"}
THEIR_KARPENTER: dict[str, Any] = {"existing": "theirs", "existing_karpenter": {"node_role": "nodes"}}

WIDE = pytest.mark.nightly(tested_by="test_the_services_are_those_of_every_declared_type")


def service_of(kind: str) -> str:
    package, _, name = kind.removeprefix("aws:").partition("/")
    if package == "cloudwatch":
        return "logs" if name.startswith("log") else "events"
    return ACTIONS.get(package, package)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param({"cluster": EXISTING}, marks=WIDE),
        {"cluster": THEIR_KARPENTER},
        {"storage": {"checkpoints": "efs", "datasets": "lustre"}},
        pytest.param({"storage": {"checkpoints": "efs", "datasets": "efs"}}, marks=WIDE),
    ],
)
def test_the_services_are_those_of_every_declared_type(changes: dict[str, Any]) -> None:
    written = shipped("dev-eks")
    for section, values in changes.items():
        written[section] = {**written.get(section, {}), **values}
    written["cluster"].pop("deletion_protection", None)
    settings = parse_settings(written, "dev-eks")
    assert isinstance(settings, EksSettings)
    made = {service_of(each.type) for each in declared("dev-eks", written).made.values() if each.type.startswith("aws:")}
    named = {each.name for each in deployer_services(settings)}

    assert made <= named
    # The stack reads an existing VPC from EC2, and an existing cluster from EKS.
    assert named - made <= {"ec2"}
