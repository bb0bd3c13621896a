"""Device plugins and their versions, by the accelerators of a stack's pools."""

from __future__ import annotations

from typing import Any

import pytest
from settings_documents import changed

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.infra.declaring.eks_controllers import plugin_args

OF_NEURON: dict[str, Any] = {"pools.0.machine": "trn1.32xlarge", "teams.0.shares": {"l4-spot": 16}}


@pytest.mark.parametrize(
    "changes,nvidia,neuron",
    [
        ({}, "0.19.3", None),
        (OF_NEURON, None, "1.10.0"),
        (OF_NEURON | {"controllers": {"neuron_device_plugin": {"version": "1.11.0"}}}, None, "1.11.0"),
        (OF_NEURON | {"cluster.ami": "bottlerocket@1.65.0"}, None, "1.10.0"),
    ],
)
def test_a_stack_has_only_the_device_plugins_for_its_pools(changes: dict[str, Any], nvidia: str | None, neuron: str | None) -> None:
    settings = parse_settings(changed("eks", changes), "test")
    assert isinstance(settings, EksSettings)

    args = plugin_args(build_plan(settings, "test"), settings)

    assert (args.get("nvidia"), args.get("neuron")) == (nvidia is not None, neuron is not None)
    assert (args.get("nvidia_version"), args.get("neuron_version")) == (nvidia, neuron)
