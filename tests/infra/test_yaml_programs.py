"""Programs in YAML under the real engine and Pulumi's own host for YAML, with components from their own process over the wire."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from component_calls import on_the_wire
from component_consumers import (
    TRIED,
    consumer,
    declare_shown,
    declare_tried,
    of_python,
    previewed,
    shown_platform,
    shown_resources,
    written,
)
from program_declarations import shipped

from capacity.settings.stack_file import parse_settings
from infra.program import declare

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from component_consumers import Consumer

    from lab.tools.build import Tools

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def project(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consumer]:
    with consumer(tools, tmp_path_factory.mktemp("consumer"), "pulumi-yaml", "yaml") as made:
        yield made


def preview(project: Consumer, resources: dict[str, Any], outputs: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What a preview of a program in YAML says, as JSON."""
    project.write({"runtime": "yaml", "resources": resources, "outputs": outputs or {}})
    return project.preview()


def test_a_program_in_yaml_makes_the_resources_that_a_program_in_python_makes(project: Consumer, tmp_path: Path) -> None:
    resources: dict[str, Any] = {}
    for component in TRIED:
        name, args = written(component)
        resources[component] = {"name": name, "type": f"flexspot:index:{component}", "properties": on_the_wire(component, args)}

    from_yaml = previewed(preview(project, resources))

    from_python = of_python(project, tmp_path, declare_tried)
    assert len(from_python) > 10
    assert sorted(from_yaml) == sorted(from_python)
    for key, inputs in from_python.items():
        assert from_yaml[key] == inputs, key


PROGRAMS = {
    "dev-eks": {"resources": {"prod": {"type": "flexspot:index:EksPlatform", "properties": {"platform": shipped("dev-eks")}}}},
    "dev-gke": {"resources": {"prod": {"type": "flexspot:index:GkePlatform", "properties": {"platform": shipped("dev-gke")}}}},
    "of the guide": shown_platform(),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_whole_platform_in_yaml_is_what_a_stack_with_its_settings_is(project: Consumer, tmp_path: Path, program: dict[str, Any]) -> None:
    [(name, platform)] = program["resources"].items()
    settings = platform["properties"]["platform"]

    from_yaml = previewed(preview(project, program["resources"], program.get("outputs", {"queues": f"${{{name}.queues}}"})))

    from_stack = of_python(project, tmp_path, lambda: declare(parse_settings(settings, "a stack"), "a stack", tmp_path))
    assert len(from_stack) > 100
    assert sorted(from_yaml) == sorted(from_stack)
    for key, inputs in from_stack.items():
        assert from_yaml[key] == inputs, key


def test_settings_of_a_platform_that_cannot_work_are_told_by_their_paths(project: Consumer) -> None:
    settings = shipped("dev-eks", environment="Dev Two")

    said = preview(project, {"prod": {"type": "flexspot:index:EksPlatform", "properties": {"platform": settings}}})

    assert said.returncode != 0
    assert "environment (is 'Dev Two')" in said.stdout
    assert "Traceback" not in said.stdout + said.stderr


def test_whole_numbers_of_a_program_in_yaml_are_whole_in_objects_of_kubernetes(project: Consumer) -> None:
    name, args = written("GpuNodePool")
    pool = on_the_wire("GpuNodePool", args) | {"idleSeconds": 60}

    said = preview(project, {name: {"type": "flexspot:index:GpuNodePool", "properties": pool}})

    assert said.returncode == 0, said.stdout + said.stderr
    [inputs] = [each["newState"]["inputs"] for each in json.loads(said.stdout)["steps"] if each["newState"]["type"].endswith(":NodePool")]
    assert inputs["spec"]["disruption"]["consolidateAfter"] == "60s"


@pytest.mark.parametrize(
    "changes,told",
    [
        pytest.param({"maxNodes": 0}, "gpu-pool-without-limit: GpuNodePool", id="refused by the component"),
        pytest.param({"maxNodes": 2.5}, "maxNodes", id="half a node"),
        pytest.param({"machines": None}, "machines", id="missing"),
    ],
)
def test_what_cannot_be_made_is_told_with_the_inputs_name_and_without_a_place_in_python(
    project: Consumer, changes: dict[str, Any], told: str
) -> None:
    name, args = written("GpuNodePool")
    pool = {key: value for key, value in (on_the_wire("GpuNodePool", args) | changes).items() if value is not None}

    said = preview(project, {name: {"type": "flexspot:index:GpuNodePool", "properties": pool}})

    assert said.returncode != 0
    assert told in said.stdout + said.stderr
    assert "Traceback" not in said.stdout + said.stderr
    assert ".py" not in said.stdout + said.stderr


def test_the_program_of_the_guide_makes_the_resources_that_it_makes_in_python_and_has_outputs(project: Consumer, tmp_path: Path) -> None:
    pool = shown_resources()

    made = previewed(preview(project, pool, {"pool": f"${{{next(iter(pool))}.name}}"}))

    assert made
    assert made == of_python(project, tmp_path, declare_shown)
