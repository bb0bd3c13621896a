"""An organisation's requirements for everything in AWS: own tags, a permissions boundary, an IAM path, own keys and owners."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
from declared_inputs import refused_inputs
from eks_declarations import node_classes
from organisation_stack import ACCOUNT, BOUNDARY, KEY, everything_settings, organisation_settings
from program_declarations import as_shipped, declared, shipped
from request_judge import refused_requests

from flexspot.capacity.settings.platform import SET_BY_OTHERS, SET_BY_THE_PLATFORM
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from program_declarations import Declarations

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"


@functools.cache
def asked() -> Declarations:
    """Return the production stack with an organisation's settings."""
    return declared("prod-eks", organisation_settings())


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(organisation_settings, marks=pytest.mark.nightly(tested_by="test_the_provider_and_awss_models_accept_all_inputs")),
        everything_settings,
    ],
)
def test_the_provider_and_awss_models_accept_all_inputs(settings: Callable[[], dict[str, Any]]) -> None:
    made = declared("prod-eks", settings()).made.values()

    assert len({each.type for each in made}) > 40
    assert refused_inputs(made) == []
    assert refused_requests(made) == []


@pytest.mark.slow
def test_every_tagged_aws_resource_has_the_organisations_tags_too() -> None:
    before, after = as_shipped("prod-eks").made, asked().made
    tagged = [name for name, each in before.items() if each.type.startswith("aws:") and each.inputs.get("tags")]

    assert len(tagged) > 60
    for name in tagged:
        # Roles and policies are the same resources, with another path.
        assert after[name].inputs["tags"] == before[name].inputs["tags"] | {"CostCenter": "4711"}, name


def test_machines_volumes_and_interfaces_have_the_organisations_tags() -> None:
    [template] = asked().of("aws:ec2/launchTemplate:LaunchTemplate")
    assert {each["resourceType"] for each in template.inputs["tagSpecifications"] if each["tags"]["CostCenter"] == "4711"} == {
        "instance",
        "volume",
        "network-interface",
    }
    for name, spec in node_classes(asked()).items():
        assert spec["tags"]["CostCenter"] == "4711", name


def test_a_stack_cannot_set_the_platforms_tags() -> None:
    """Derived from the declarations of the shipped stacks, not from the list in the settings."""
    declarations = [as_shipped("dev-eks"), as_shipped("prod-eks")]
    tags: list[dict[str, str]] = [resource.inputs.get("tags") or {} for each in declarations for resource in each.made.values()]
    keys = {key for each in tags for key in each}
    keys |= {key for each in declarations for spec in node_classes(each).values() for key in spec["tags"]}

    assert {key for key in keys if key not in SET_BY_THE_PLATFORM and not key.startswith(SET_BY_OTHERS)} == set()
    for key in keys:
        with pytest.raises(SettingsError, match="leave it out"):
            parse_settings(shipped("dev-eks", tags={key: "mine"}), "test")


def test_every_role_has_the_path_and_the_boundary() -> None:
    roles = asked().of(ROLE)

    assert len(roles) == len(as_shipped("prod-eks").of(ROLE)) > 8
    assert {(each.inputs["path"], each.inputs["permissionsBoundary"]) for each in roles} == {("/platform/", BOUNDARY)}
    assert {each.inputs["path"] for each in asked().of(POLICY)} == {"/platform/"}


def test_karpenter_may_pass_its_nodes_role_and_names_it_without_its_path() -> None:
    """IAM compares whole ARNs; AddRoleToInstanceProfile takes a name (Karpenter, pkg/providers/instanceprofile/instanceprofile.go)."""
    [role] = [each for each in asked().of(ROLE) if each.name == "karpenter-nodes-role"]
    passed = [each.inputs["policy"] for each in asked().of(POLICY) if "iam:PassRole" in each.inputs["policy"]]

    assert len(passed) == 1
    assert f"arn:aws:iam::{ACCOUNT}:role{role.inputs['path']}{role.inputs['name']}" in passed[0]
    assert f":role/{role.inputs['name']}" not in passed[0]


def test_teams_pods_use_their_teams_role() -> None:
    roles = {f"arn:aws:iam::{ACCOUNT}:role{each.inputs['path']}{each.inputs['name']}" for each in asked().of(ROLE)}
    known = [each.inputs["roleArn"] for each in asked().of("aws:eks/podIdentityAssociation:PodIdentityAssociation")]

    assert {arn for arn in known if isinstance(arn, str)} <= roles
    assert sum(isinstance(arn, str) for arn in known) >= 4, "the teams'"


@pytest.mark.parametrize(
    "changes",
    [
        *(
            {"tags": each}
            for each in (
                {"Owner": "x"},
                {"aws:team": "x"},
                {"AWS:team": "x"},
                {"kubernetes.io/cluster/dev": "owned"},
                {"CostCenter": "1", "costcenter": "2"},
                {"": "x"},
                {"a" * 129: "x"},
                {"key": "v" * 257},
                {"key": "a,b"},
                {f"key-{number}": "x" for number in range(36)},
            )
        ),
        *({"iam": {"path": each}} for each in ("platform", "/platform", "/plat form/", f"/{'p' * 511}/")),
        *({"iam": {"permissions_boundary": each}} for each in (f"arn:aws:iam::{ACCOUNT}:role/boundary", "boundary")),
    ],
)
def test_values_that_aws_and_iam_refuse_are_refused(changes: dict[str, Any]) -> None:
    """AWS's tagging limits, and IAM's: "tag keys are not case sensitive" (IAM user guide, "Tags for IAM resources")."""
    with pytest.raises(SettingsError):
        parse_settings(shipped("dev-eks", **changes), "test")


def test_an_owner_next_to_ids_is_refused() -> None:
    """The definition of EC2NodeClass: "'id' is mutually exclusive, cannot be set along with other fields"."""
    settings = shipped("prod-eks")
    settings["pools"][3]["reservation"]["owner"] = "444455556666"

    with pytest.raises(SettingsError, match="owner cannot be combined with ids"):
        parse_settings(settings, "test")


def test_nodes_logs_and_reservations_have_the_stacks_settings() -> None:
    [logs] = asked().inputs_of("aws:cloudwatch/logGroup:LogGroup")
    assert logs["kmsKeyId"] == KEY
    terms = node_classes(asked())["h100-reserved"]["capacityReservationSelectorTerms"]
    assert terms == [{"ownerID": "444455556666", "tags": {"purpose": "training"}}]
    for name, spec in node_classes(asked()).items():
        assert spec["kubelet"] == {"maxPods": 110}, name
        assert "FastImagePull: true" in spec["userData"], name
    for name, spec in node_classes(as_shipped("prod-eks")).items():
        assert not {"kubelet", "userData"} & spec.keys(), name
