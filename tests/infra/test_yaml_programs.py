"""Programs in YAML in the real engine and Pulumi's YAML host, with components in their own process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from component_calls import calls_of_stacks, on_the_wire
from component_consumers import consumer, declare_shown, of_python, previewed, shown, shown_resources

from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.components.gke.gpu_node_pool import GkeGpuNodePool
from flexspot.components.karpenter.node_pools import GpuNodePool
from flexspot.components.kueue.queues import Queues
from flexspot.components.tenancy.team import Team
from flexspot.infra.declaring.program import declare

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from component_consumers import Consumer

    from flexspot.lab.tools.build import Tools

pytestmark = [pytest.mark.engine, pytest.mark.nightly(tested_by="test_it_is_the_same_from_the_wire_as_from_python")]


def written(component: str) -> tuple[str, dict[str, Any]]:
    """Return the resource's name and its arguments in a stack's program."""
    return next(iter(calls_of_stacks()[component].items()))


@pytest.fixture(scope="module")
def project(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consumer]:
    with consumer(tools, tmp_path_factory.mktemp("consumer"), "pulumi-yaml", "yaml") as made:
        yield made


def preview(project: Consumer, resources: dict[str, Any], outputs: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Return the JSON output of a preview of a program in YAML."""
    project.write({"runtime": "yaml", "resources": resources, "outputs": outputs or {}})
    return project.preview()


def test_a_yaml_program_declares_the_same_resources_as_a_python_program(project: Consumer, tmp_path: Path) -> None:
    tried: dict[str, Any] = {each.__name__: each for each in (GpuNodePool, GkeGpuNodePool, Team, Queues)}
    resources: dict[str, Any] = {}
    for component in tried:
        name, args = written(component)
        package = "flexspot-gke" if component == "GkeGpuNodePool" else "flexspot-eks"
        resources[component] = {"name": name, "type": f"{package}:index:{component}", "properties": on_the_wire(component, args)}

    def declare_tried() -> None:
        for component, made in tried.items():
            name, args = written(component)
            made(name, args)

    from_yaml = previewed(preview(project, resources))

    from_python = of_python(project, tmp_path, declare_tried)
    assert len(from_python) > 10
    assert from_yaml == from_python


def test_the_guides_platform_equals_a_stack_with_its_settings(project: Consumer, tmp_path: Path) -> None:
    program = yaml.safe_load(shown("yaml"))
    [platform] = program["resources"].values()
    settings = platform["properties"]["platform"]

    def declare_stack() -> None:
        declare(parse_settings(settings, "a stack"), "a stack", tmp_path)

    from_yaml = previewed(preview(project, program["resources"], program.get("outputs", {})))

    from_stack = of_python(project, tmp_path, declare_stack)
    assert len(from_stack) > 100
    assert from_yaml == from_stack
    assert "Policies:" in project.judged()


def test_a_components_refusal_names_the_input_and_no_place_in_python(project: Consumer) -> None:
    name, args = written("GpuNodePool")
    pool = on_the_wire("GpuNodePool", args) | {"maxNodes": 2.5}

    said = preview(project, {name: {"type": "flexspot-eks:index:GpuNodePool", "properties": pool}})

    assert said.returncode != 0
    assert "maxNodes" in said.stdout + said.stderr
    assert "Traceback" not in said.stdout + said.stderr
    assert ".py" not in said.stdout + said.stderr


def test_the_guides_program_declares_the_same_resources_as_in_python_with_outputs(project: Consumer, tmp_path: Path) -> None:
    pool = shown_resources()

    made = previewed(preview(project, pool, {"pool": f"${{{next(iter(pool))}.name}}"}))

    assert made
    assert made == of_python(project, tmp_path, declare_shown)
    assert "Policies:" in project.judged()
