"""Programs in other languages and in Python that use components over the wire, with the real engine and offline providers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from component_calls import floats, host
from pulumi import automation

from flexspot.capacity.values.engine_marks import UNKNOWNS
from flexspot.components.karpenter.node_pools import GpuNodePool
from flexspot.infra.declaring.program import PlannedResources
from flexspot.infra.deployment.prerequisites import PLUGINS
from flexspot.lab.progress import Silence
from flexspot.lab.providers.offline import OfflineProvider
from flexspot.lab.providers.serving import serve
from flexspot.lab.tools.build import ensure_tools, family_named
from flexspot.policies import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from flexspot.lab.tools.build import Tools

    Resources = dict[str, dict[str, Any]]

CHECKOUT = Path(__file__).resolve().parents[1]

PLUGIN_FOLDERS = CHECKOUT / "infra" / "plugins"
GUIDE = CHECKOUT / "docs" / "guides" / "other-languages.md"

UNKNOWN_VALUE, SECRET_VALUE = {"$unknown": True}, {"$secret": True}


@dataclass
class Consumer:
    """A project whose program uses the components from their own process."""

    folder: Path
    engine: Path
    plugins: dict[str, Path]
    """Plugin programs by cloud."""
    environment: dict[str, str]

    def write(self, project: dict[str, Any]) -> None:
        """Write the project's file, as JSON, which is valid YAML."""
        plugins = {"providers": [{"name": f"flexspot-{cloud}", "path": str(each.parent)} for cloud, each in self.plugins.items()]}
        (self.folder / "Pulumi.yaml").write_text(json.dumps({"name": "consumer", "plugins": plugins} | project))

    def preview(self) -> subprocess.CompletedProcess[str]:
        """Return the result of a preview as JSON."""
        return self.run("preview", "--stack", "test", "--json", "--non-interactive")

    def judged(self) -> str:
        """Return the output of a preview under the shipped policy pack. Fails if a mandatory rule rejects it."""
        done = self.run("preview", "--stack", "test", "--non-interactive", "--policy-pack", PROGRAM)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Return the result of the engine's command in the project's folder."""
        return subprocess.run(
            [self.engine, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )


@contextmanager
def consumer(tools: Tools, folder: Path, family: str, runtime: str) -> Generator[Consumer]:
    """Yield a project in `folder` with a stack, for programs in the language of `family`, a family of flexspot/lab/tools."""
    links = ensure_tools(CHECKOUT / ".tools", Silence(), wanted=(family_named(family),)).links
    # The official language host for Python is not installed. A program replaces it, and an engine starts it in the same way.
    plugins = {cloud: folder / "plugins" / cloud / f"pulumi-resource-flexspot-{cloud}" for cloud in ("eks", "gke")}
    for cloud, plugin in plugins.items():
        plugin.parent.mkdir(parents=True)
        plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u "{PLUGIN_FOLDERS / cloud}" "$@"\n')
        plugin.chmod(0o755)
    with ExitStack() as served:
        ports = [f"{name}:{served.enter_context(serve(OfflineProvider(name, version)))}" for name, version in PLUGINS.items()]
        environment = os.environ | {
            "PATH": os.pathsep.join([str(links / "bin"), os.environ["PATH"]]),
            "PULUMI_BACKEND_URL": f"file://{folder}",
            "PULUMI_CONFIG_PASSPHRASE": "",
            "PULUMI_DEBUG_PROVIDERS": ",".join(ports),
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PYTHONWARNINGS": "ignore",
        }
        made = Consumer(folder, tools.binary("pulumi"), plugins, environment)
        made.write({"runtime": runtime})
        done = made.run("stack", "init", "test", "--non-interactive")
        assert done.returncode == 0, done.stderr
        yield made


def previewed(done: subprocess.CompletedProcess[str]) -> Resources:
    """Return the inputs that a preview creates, by type and name, without the engine's own resources."""
    assert done.returncode == 0, done.stdout + done.stderr
    states = [step["newState"] for step in json.loads(done.stdout)["steps"]]
    kept = [each for each in states if not each["type"].startswith(("pulumi:", "flexspot:"))]
    return {f"{each['type']} {each['urn'].rpartition('::')[2]}": _comparable(each.get("inputs", {})) for each in kept}


def of_python(consumer: Consumer, folder: Path, program: Callable[[], None]) -> Resources:
    """Return the inputs that a preview of a Python program creates, which declares components itself."""
    heard = PlannedResources()
    options = automation.LocalWorkspaceOptions(
        work_dir=str(folder),
        program=program,
        project_settings=automation.ProjectSettings("consumer", "python"),
        pulumi_command=automation.PulumiCommand(root=str(consumer.engine.parents[1])),
        env_vars={name: value for name, value in consumer.environment.items() if name.startswith("PULUMI_")}
        | {"PULUMI_BACKEND_URL": f"file://{folder}"},
    )
    automation.create_or_select_stack("test", "consumer", program, opts=options).preview(on_event=heard.hear)
    kept = [each for each in heard.resources.values() if not each["type"].startswith(("pulumi:", "flexspot:"))]
    return {f"{each['type']} {each['name']}": _comparable(each["inputs"]) for each in kept}


def shown(language: str) -> str:
    """Return the program of a language in the guide."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return found


def shown_resources() -> dict[str, Any]:
    """Return the resources of the guide's program in YAML."""
    read: dict[str, dict[str, Any]] = yaml.safe_load(shown("text"))
    return read["resources"]


def declare_shown() -> None:
    """Declare the guide's program in Python."""
    [(name, pool)] = shown_resources().items()
    definition = host()._component_defs[GpuNodePool.__name__]  # noqa: SLF001 -- the SDK offers it nowhere else
    GpuNodePool(name, host().map_inputs(pool["properties"], definition))  # pyrefly: ignore[bad-argument-type] -- as configured


def _comparable(inputs: dict[str, Any]) -> dict[str, Any]:
    return {key: _known(value) for key, value in floats(inputs).items() if key != "__defaults"}


def _known(value: Any) -> Any:
    """Return a value with unknown and secret parts in the form of PlannedResources."""
    if isinstance(value, dict):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_known(each) for each in value]
    if value == "[secret]":
        return SECRET_VALUE
    return UNKNOWN_VALUE if isinstance(value, str) and value in UNKNOWNS else value
