"""The Kubernetes provider of a stack: one, with the same settings everywhere, whatever the environment says."""

from __future__ import annotations

import pytest
from program_declarations import STACKS, as_shipped, declared, shipped

PROVIDER = "pulumi:providers:kubernetes"

SHIPPED = tuple(sorted(path.name.split(".")[1] for path in STACKS.glob("Pulumi.*.yaml")))

# How a provider's settings are sent: as JSON in a text.
SETTINGS = {"enableServerSideApply": "true", "enablePatchForce": "true", "upsertExistingObjects": "false"}


@pytest.mark.parametrize("stack", SHIPPED)
def test_every_stack_has_one_provider_that_forces_and_never_upserts(stack: str) -> None:
    [provider] = as_shipped(stack).of(PROVIDER)

    # A provider of another name would be another one to the state: everything would be replaced.
    assert provider.name == ("lab" if stack == "local" else "cluster")
    assert {key: value for key, value in provider.inputs.items() if key != "kubeconfig"} == SETTINGS


@pytest.mark.parametrize("stack", SHIPPED)
def test_every_kubernetes_object_goes_through_it(stack: str) -> None:
    made = as_shipped(stack).made.values()

    objects = [each for each in made if each.type.startswith("kubernetes:")]
    assert objects
    assert [each.name for each in objects if f"{PROVIDER}::" not in each.provider] == []


def test_a_persons_environment_does_not_turn_upsert_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_K8S_UPSERT_EXISTING_OBJECTS", "true")
    monkeypatch.setenv("PULUMI_K8S_ENABLE_PATCH_FORCE", "false")

    [provider] = declared("local", shipped("local")).of(PROVIDER)

    assert {key: value for key, value in provider.inputs.items() if key != "kubeconfig"} == SETTINGS
