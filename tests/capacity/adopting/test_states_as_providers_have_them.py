"""The states of these tests against the providers' schemas: Pulumi's SDKs are made from the Terraform providers, name for name."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_aws import ec2, eks, iam
from pulumi_gcp import container

from capacity.adopting.terraform_state import read_state

if TYPE_CHECKING:
    from collections.abc import Iterator

STATES = Path(__file__).parent / "states"
CLASSES: dict[str, Any] = {
    "aws_eks_cluster": eks.Cluster,
    "aws_eks_node_group": eks.NodeGroup,
    "aws_launch_template": ec2.LaunchTemplate,
    "aws_subnet": ec2.Subnet,
    "aws_iam_role": iam.Role,
    "google_container_cluster": container.Cluster,
    "google_container_node_pool": container.NodePool,
}


def names_of(known: Any) -> dict[str, Any]:
    """The properties of a resource as it is, or of a block, each with the class of the blocks in it, or None."""
    function = known.get if hasattr(known, "get_provider") or "get" in vars(known) else known.__init__
    package = sys.modules[known.__module__.rpartition(".")[0]]
    names = {name: each.annotation for name, each in inspect.signature(function).parameters.items()}
    return {name: block_in(str(each), package) for name, each in names.items() if name not in {"__self__", "resource_name", "opts"}}


def block_in(annotation: str, package: Any) -> Any:
    """The class of the blocks that an annotation names: the SDK writes them as text."""
    found = re.search(r"\b(\w+Args)\b", annotation)
    return None if found is None else getattr(package, found[1], None)


def spelled(name: str, known: dict[str, Any]) -> str | None:
    """A Terraform attribute as the SDK has it: Pulumi writes a block that may stand several times in the plural."""
    return next((each for each in (name, f"{name}s", f"{name}es", f"{name[:-1]}ies") if each in known), None)


def unknown(values: dict[str, Any], kind: Any, path: str) -> Iterator[str]:
    known = names_of(kind)
    for name, value in values.items():
        if name == "id" and not path.count("."):
            continue
        found = spelled(name, known)
        if found is None:
            yield f"{path}.{name}"
            continue
        inner = known[found]
        for each in value if isinstance(value, list) else []:
            if isinstance(each, dict) and inner is not None:
                yield from unknown(each, inner, f"{path}.{name}")


@pytest.mark.parametrize("name", ["eks-module.json", "gke-toolkit.json", "gke-raw.tfstate"])
def test_each_attribute_of_a_state_is_one_of_its_provider(name: str) -> None:
    read = [each for each in read_state((STATES / name).read_bytes(), name) if each.type in CLASSES]

    assert len(read) >= 2
    assert [each for one in read for each in unknown(one.values.fields, CLASSES[one.type], one.type)] == []


def test_an_attribute_that_no_provider_has_would_be_found() -> None:
    wrong = {"name": "a", "node_config": [{"machine_typ": "n1", "guest_accelerator": [{"count": 1, "kind": "t4"}]}]}

    assert list(unknown(wrong, container.NodePool, "p")) == ["p.node_config.machine_typ", "p.node_config.guest_accelerator.kind"]
