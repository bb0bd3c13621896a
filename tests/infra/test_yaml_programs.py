"""Programs in YAML under the real engine and Pulumi's own host for YAML, with components from their own process over the wire."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from component_calls import as_python_has_them, calls_of_stacks, floats, on_the_wire
from pulumi import automation

from components.gke.gpu_node_pool import GkeGpuNodePool
from components.karpenter.gpu_node_pool import GpuNodePool
from components.kueue.queues import Queues
from components.tenancy.team import Team
from infra.deployment.cloud_run import PLUGINS
from infra.program import PlannedResources
from lab.progress import Silence
from lab.providers.offline import OfflineProvider
from lab.providers.serving import serve
from lab.tools.build import ensure_tools, family_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.tools.build import Tools

pytestmark = pytest.mark.engine

CHECKOUT = Path(__file__).resolve().parents[2]

TRIED = {each.__name__: each for each in (GpuNodePool, GkeGpuNodePool, Team, Queues)}
"""A Spot pool on a cluster that somebody has, on each cloud; a team; queues."""


@dataclass
class Engine:
    """The real engine over offline providers, in a folder with a program."""

    folder: Path
    program: Path
    environment: dict[str, str]

    def preview(self, resources: dict[str, Any], outputs: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """What a preview of a program in YAML says, as JSON."""
        project = {
            "name": "consumer",
            "runtime": "yaml",
            "plugins": {"providers": [{"name": "flexspot", "path": str(self.folder / "plugin")}]},
            "resources": resources,
            "outputs": outputs or {},
        }
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
        return self._run("preview", "--stack", "test", "--json", "--non-interactive")

    def prepare(self) -> None:
        (self.folder / "Pulumi.yaml").write_text("name: consumer\nruntime: yaml\n")
        made = self._run("stack", "init", "test", "--non-interactive")
        assert made.returncode == 0, made.stderr

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.program, *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture(scope="module")
def engine(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    host = ensure_tools(CHECKOUT / ".tools", Silence(), wanted=(family_named("pulumi-yaml"),))
    folder = tmp_path_factory.mktemp("consumer")
    # The official host for Python, which cannot be had here, starts the folder as PulumiPlugin.yaml says; an engine starts a program so.
    plugin = folder / "plugin" / "pulumi-resource-flexspot"
    plugin.parent.mkdir()
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u "{CHECKOUT / "components"}" "$@"\n')
    plugin.chmod(0o755)
    with ExitStack() as served:
        ports = [f"{name}:{served.enter_context(serve(OfflineProvider(name, version)))}" for name, version in PLUGINS.items()]
        environment = os.environ | {
            "PATH": os.pathsep.join([str(host.links / "bin"), os.environ["PATH"]]),
            "PULUMI_BACKEND_URL": f"file://{folder}",
            "PULUMI_CONFIG_PASSPHRASE": "",
            "PULUMI_DEBUG_PROVIDERS": ",".join(ports),
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONWARNINGS": "ignore",
        }
        made = Engine(folder, tools.binary("pulumi"), environment)
        made.prepare()
        yield made


def written(component: str) -> tuple[str, dict[str, Any]]:
    """A call of a stack's program: the resource's name and its arguments."""
    return next(iter(calls_of_stacks()[component].items()))


def resources_of(said: str) -> dict[str, dict[str, Any]]:
    """Inputs by type and name, without what the engine itself makes."""
    steps = json.loads(said)["steps"]
    states = [step["newState"] for step in steps]
    kept = [each for each in states if not each["type"].startswith("pulumi:") and not each["type"].startswith("flexspot:")]
    return {f"{each['type']} {each['urn'].rpartition('::')[2]}": floats(each.get("inputs", {})) for each in kept}


def in_python(engine: Engine, folder: Path) -> dict[str, dict[str, Any]]:
    """The same resources of a program in Python, which declares the components itself."""

    def program() -> None:
        for component, made in TRIED.items():
            name, args = written(component)
            made(name, as_python_has_them(made, args))  # pyrefly: ignore[bad-argument-type] -- as told

    heard = PlannedResources()
    options = automation.LocalWorkspaceOptions(
        work_dir=str(folder),
        program=program,
        project_settings=automation.ProjectSettings("consumer", "python"),
        pulumi_command=automation.PulumiCommand(root=str(engine.program.parents[1])),
        env_vars={name: value for name, value in engine.environment.items() if name.startswith("PULUMI_")}
        | {"PULUMI_BACKEND_URL": f"file://{folder}"},
    )
    automation.create_or_select_stack("test", "consumer", program, opts=options).preview(on_event=heard.hear)
    kept = [each for each in heard.resources.values() if not each["type"].startswith(("pulumi:", "flexspot:"))]
    return {f"{each['type']} {each['name']}": floats(each["inputs"]) for each in kept}


def without_own(inputs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if key != "__defaults"}


def test_a_program_in_yaml_makes_the_resources_that_a_program_in_python_makes(engine: Engine, tmp_path: Path) -> None:
    resources: dict[str, Any] = {}
    for component in TRIED:
        name, args = written(component)
        resources[component] = {"name": name, "type": f"flexspot:index:{component}", "properties": on_the_wire(component, args)}

    said = engine.preview(resources)

    assert said.returncode == 0, said.stdout + said.stderr
    from_yaml, from_python = resources_of(said.stdout), in_python(engine, tmp_path)
    assert len(from_python) > 10
    assert sorted(from_yaml) == sorted(from_python)
    for key, inputs in from_python.items():
        assert without_own(from_yaml[key]) == without_own(inputs), key


def test_whole_numbers_of_a_program_in_yaml_are_whole_in_objects_of_kubernetes(engine: Engine) -> None:
    name, args = written("GpuNodePool")
    pool = on_the_wire("GpuNodePool", args) | {"idleSeconds": 60}

    said = engine.preview({name: {"type": "flexspot:index:GpuNodePool", "properties": pool}})

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
    engine: Engine, changes: dict[str, Any], told: str
) -> None:
    name, args = written("GpuNodePool")
    pool = {key: value for key, value in (on_the_wire("GpuNodePool", args) | changes).items() if value is not None}

    said = engine.preview({name: {"type": "flexspot:index:GpuNodePool", "properties": pool}})

    assert said.returncode != 0
    assert told in said.stdout + said.stderr
    assert "Traceback" not in said.stdout + said.stderr
    assert ".py" not in said.stdout + said.stderr


def test_outputs_of_components_are_there_for_the_program(engine: Engine) -> None:
    name, args = written("GpuNodePool")
    pool = {"type": "flexspot:index:GpuNodePool", "properties": on_the_wire("GpuNodePool", args)}

    said = engine.preview({name: pool}, {"pool": f"${{{name}.name}}"})

    assert said.returncode == 0, said.stdout + said.stderr
