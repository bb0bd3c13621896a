"""The Pulumi engine for a lab: the official parts if they are installed, otherwise those that the lab builds."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from flexspot.infra.deployment.prerequisites import PLUGINS, command_line, plugin_path, plugin_version, sdk_version
from flexspot.lab.providers.offline import OfflineProvider
from flexspot.lab.providers.serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from flexspot.infra.deployment.prerequisites import CommandLine
    from flexspot.lab.home import LabHome
    from flexspot.lab.tools.build import Tools


@dataclass(frozen=True)
class Engine:
    """An engine to run."""

    root: Path | None
    """Folder with bin/pulumi; None for the official engine on PATH."""

    environment: dict[str, str]
    notes: tuple[str, ...]
    """Notes for the user."""

    def program(self, tools: Tools) -> str:
        """Return the command to run."""
        return "pulumi" if self.root is None else str(tools.binary("pulumi"))

    def command_line_environment(self, home: LabHome, tools: Tools) -> dict[str, str]:
        """Return the variables for the plain command line to run the project's program against the lab: its state and a language host."""
        own = {"PULUMI_BACKEND_URL": state_url(home), "PULUMI_CONFIG_PASSPHRASE": "", "FLEXSPOT_LAB_KUBECONFIG": str(home.kubeconfig)}
        chosen = {name: os.environ[name] for name in ("PULUMI_BACKEND_URL",) if name in os.environ}
        # The stand-in host does not read the virtual environment from Pulumi.yaml: it runs the first python on PATH.
        own_hosts = [] if shutil.which("pulumi-language-python") else [str(tools.links / "bin"), str(Path(sys.executable).parent)]
        # The official host runs `uv`, which is here if setup has installed it.
        folders = [*own_hosts, os.environ.get("PATH", ""), str(tools.links / "uv" / "bin")]
        return {**self.environment, **own, **chosen, "PATH": os.pathsep.join(folders)}


def state_url(home: LabHome) -> str:
    """Return the URL of the file backend inside the lab's folder, so that neither outlives the other."""
    folder = home.folder / "pulumi"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return f"file://{folder}"


@contextmanager
def engine_for(kubeconfig: Path, tools: Tools) -> Generator[Engine]:
    """Yield an engine for programs that deploy to the lab of `kubeconfig`. Stand-ins serve until the block ends."""
    found = command_line()
    official = found is not None and found.fits
    environment = {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    if not official:
        environment["PULUMI_HOME"] = _home_without_logs(kubeconfig.parent)
    plugin = plugin_path("kubernetes")
    if official and plugin:
        yield Engine(None, environment, ())
        return
    missing = [] if official else [_missing(found)]
    if plugin is None:
        missing.append(f"the Kubernetes provider plugin {plugin_version('kubernetes')}")
    # Imports the Kubernetes client, which an offline preview does not need.
    from flexspot.lab.providers.kubernetes import KubernetesStandIn  # noqa: PLC0415

    with serve(KubernetesStandIn(kubeconfig)) as port:
        environment["PULUMI_DEBUG_PROVIDERS"] = f"kubernetes:{port}"
        # All required plugins are here, so the engine need not search the network.
        environment["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        note = f"not on this machine: {', '.join(missing)}; the lab uses its own replacements, for this lab only."
        yield Engine(None if official else tools.links, environment, (note,))


def own_root(tools: Callable[[], Tools]) -> Path | None:
    """Return the folder of the engine that the lab builds, or None if the official command line fits. `tools` is called only if needed."""
    found = command_line()
    return None if found is not None and found.fits else tools().links


@contextmanager
def offline_engine(tools: Callable[[], Tools]) -> Generator[Engine]:
    """Yield an engine for previews without any cluster or cloud: providers echo their inputs and refuse to change anything.

    `tools` is called only if the official command line is missing or does not fit.
    """
    root = own_root(tools)
    with ExitStack() as served:
        ports = [f"{name}:{served.enter_context(serve(OfflineProvider(name, version)))}" for name, version in PLUGINS.items()]
        environment = {
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_PROVIDERS": ",".join(ports),
            "PULUMI_HOME": _home_without_logs(Path(served.enter_context(TemporaryDirectory()))),
        }
        yield Engine(root, environment, ("offline: providers echo their inputs, no cluster or cloud is contacted, no state is kept.",))


def _home_without_logs(folder: Path) -> str:
    """Return a PULUMI_HOME whose `logs` is a file, so that the engine cannot create its folder of logs.

    The engine logs each property of each resource, encrypted. This takes a quarter of its CPU, and no option turns it off (3.259.0,
    2026-11-28). Use this only for the lab's own engine: the PULUMI_HOME of a user holds credentials and plugins.
    """
    home = folder / "pulumi-home"
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "logs").touch()
    return str(home)


def _missing(found: CommandLine | None) -> str:
    """Describe what is missing: the Pulumi command line, or a version of it that matches the SDK."""
    if found is None:
        return "the pulumi command line"
    return f"a pulumi command line of version {sdk_version()} ({found.path} is {found.version})"
