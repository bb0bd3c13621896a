"""The Kubernetes provider of a stack: only one, with the same settings in any environment."""

from __future__ import annotations

import pytest
from engine_steps import steps
from program_declarations import STACKS, as_shipped, declared, shipped

PROVIDER = "pulumi:providers:kubernetes"

SHIPPED = tuple(sorted(path.name.split(".")[1] for path in STACKS.glob("Pulumi.*.yaml")))

# A provider's settings are sent as JSON text.
SETTINGS = {
    "enableServerSideApply": "true",
    "enablePatchForce": "true",
    "upsertExistingObjects": "false",
    "enableConfigMapMutable": "true",
}


@pytest.mark.parametrize("stack", SHIPPED)
def test_every_stack_has_one_provider_that_forces_patches_and_never_upserts(stack: str) -> None:
    [provider] = as_shipped(stack).of(PROVIDER)

    # Another name is another provider in the state, so everything would be replaced.
    assert provider.name == ("lab" if stack == "local" else "cluster")
    assert {key: value for key, value in provider.inputs.items() if key not in {"kubeconfig", "clusterIdentifier"}} == SETTINGS


@pytest.mark.slow
@pytest.mark.parametrize(
    "stack,changes",
    [
        ("prod-gke", {"control_plane": {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}}),
        ("prod-eks", {"control_plane": {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}}),
    ],
)
def test_changed_access_to_the_api_server_replaces_no_object(stack: str, changes: dict[str, object]) -> None:
    """A changed access to the API server must not replace every object of the cluster, including teams' volumes."""
    before, after = (declared(stack, shipped(stack, **each), there=True) for each in ({}, changes))

    lost = [each.name for each in steps(before, after).lost if each.kind.startswith(("kubernetes:", PROVIDER))]

    assert lost == []


@pytest.mark.parametrize("stack", SHIPPED)
def test_every_kubernetes_object_uses_the_stacks_provider(stack: str) -> None:
    made = as_shipped(stack).made.values()

    objects = [each for each in made if each.type.startswith("kubernetes:")]
    assert objects
    assert [each.name for each in objects if f"{PROVIDER}::" not in each.provider] == []


def test_environment_variables_do_not_enable_upsert(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_K8S_UPSERT_EXISTING_OBJECTS", "true")
    monkeypatch.setenv("PULUMI_K8S_ENABLE_PATCH_FORCE", "false")

    [provider] = declared("local", shipped("local")).of(PROVIDER)

    assert {key: value for key, value in provider.inputs.items() if key != "kubeconfig"} == SETTINGS
