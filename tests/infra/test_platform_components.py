"""Whole platforms as components: they declare the same as the program of a stack with the same settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from auto_mode_settings import auto_mode_settings
from autopilot_settings import autopilot_settings
from component_calls import floats
from program_declarations import COMPONENTS, Declarations, LaterPreview, Preview, declared, shipped, under_mocks

from flexspot.capacity.values.errors import SettingsError
from flexspot.components.hosting.plugin import Plugin
from flexspot.infra.declaring.platforms import EksPlatform, GkePlatform, PlatformArgs

if TYPE_CHECKING:
    from collections.abc import Callable

STACKS: dict[str, tuple[type[EksPlatform | GkePlatform], Callable[[], dict[str, Any]]]] = {
    "dev-gke": (GkePlatform, lambda: shipped("dev-gke")),
    "prod-gke": (GkePlatform, lambda: shipped("prod-gke")),
    "autopilot": (GkePlatform, autopilot_settings),
    "dev-eks": (EksPlatform, lambda: shipped("dev-eks")),
    "prod-eks": (EksPlatform, lambda: shipped("prod-eks")),
    "auto-mode": (EksPlatform, auto_mode_settings),
}


def in_a_component(
    kind: type[EksPlatform | GkePlatform], settings: dict[str, Any], opts: Callable[[], pulumi.ResourceOptions] | None = None
) -> tuple[Declarations, dict[str, Any]]:
    """Return the plugin's declarations and outputs for a program in any language, with numbers as on the wire."""
    offered: dict[str, Any] = {}

    def program() -> None:
        inputs = {"platform": floats(settings)}
        package = Plugin("gke" if kind is GkePlatform else "eks")
        made = package.construct("platform", f"{COMPONENTS}{kind.__name__}", inputs, opts() if opts else pulumi.ResourceOptions())
        pulumi.Output.from_input(made.state).apply(offered.update)

    return under_mocks("test", program, LaterPreview()), offered


BREADTH = pytest.mark.nightly(tested_by="test_a_platform_declares_what_the_program_of_its_stack_does")


@pytest.mark.slow
@pytest.mark.parametrize(
    "stack", ["dev-gke", "dev-eks", *(pytest.param(each, marks=BREADTH) for each in STACKS if each not in {"dev-gke", "dev-eks"})]
)
def test_a_platform_declares_what_the_program_of_its_stack_does(stack: str) -> None:
    kind, settings = STACKS[stack]
    of_program = declared("test", settings(), there=True).made
    of_component, offered = in_a_component(kind, settings())

    platform = f"{COMPONENTS}{kind.__name__} platform"
    made = dict(of_component.made)
    assert made.pop(platform).parent == "the stack"
    assert sorted(made) == sorted(of_program)
    for name, expected in of_program.items():
        each = made[name]
        parent = platform if expected.parent == "the stack" else expected.parent
        assert (each.inputs, each.parent, each.protected, each.ignored) == (
            expected.inputs,
            parent,
            expected.protected,
            expected.ignored,
        ), name
        assert each.after - {platform} == expected.after - {platform}, name
    assert offered["cluster"]
    assert set(offered["buckets"]) == {"checkpoints", "datasets"}
    assert set(offered["queues"]) >= {each["name"] for each in settings()["teams"]}
    assert "credentials" in offered["credentialsCommand"] or "kubeconfig" in offered["credentialsCommand"]


@pytest.mark.slow
def test_a_providers_settings_reach_the_parts_of_a_platform() -> None:
    def with_provider() -> pulumi.ResourceOptions:
        from pulumi_gcp import Provider  # noqa: PLC0415 -- seconds, for this test alone

        return pulumi.ResourceOptions(providers=[Provider("mine", project="acme-ai-dev")])

    found, _ = in_a_component(GkePlatform, shipped("dev-gke"), with_provider)

    of_cloud = [each for each in found.made.values() if each.type.startswith("gcp:")]
    assert len(of_cloud) > 10
    assert [each.name for each in of_cloud if "::mine::" not in each.provider] == []
    assert [each.name for each in found.made.values() if each.type.startswith("kubernetes:") and "::mine::" in each.provider] == []


def refusal_of(kind: type[EksPlatform | GkePlatform], settings: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as refused:
        under_mocks("test", lambda: kind("prod", PlatformArgs(platform=settings)) and None, Preview())
    return str(refused.value)


def test_invalid_settings_are_refused_with_every_path_before_any_declaration() -> None:
    settings = shipped("dev-eks", environment="Dev Two")
    settings["pools"][0]["machine"] = "g6.huge"

    message = refusal_of(EksPlatform, settings)

    assert message.startswith("EksPlatform prod platform: ")
    assert "environment" in message


def test_a_platform_of_another_cloud_is_refused() -> None:
    message = refusal_of(EksPlatform, shipped("dev-gke"))

    assert "cloud (is 'gke'): is not the cloud of EksPlatform; use eks" in message


def test_a_file_needs_an_absolute_path_without_a_stack_file() -> None:
    message = refusal_of(EksPlatform, shipped("dev-eks", prices_file="prices.yaml"))

    assert "prices_file" in message
    assert "give an absolute path" in message


def test_an_output_in_settings_is_refused_with_its_path() -> None:
    with pytest.raises(SettingsError) as refused:
        under_mocks("test", lambda: EksPlatform("prod", {"platform": with_outputs()}), Preview())

    assert "cluster.version: cannot be an output; give the value itself" in str(refused.value)
    assert "zones.1: cannot be an output" in str(refused.value)


def with_outputs() -> dict[str, Any]:
    settings = shipped("dev-eks")
    settings["cluster"]["version"] = pulumi.Output.from_input("1.35")
    settings["zones"][1] = pulumi.Output.from_input("us-east-1b")
    return settings
