"""The Pulumi engine for a lab: the official pieces where they are, those that the lab builds where they cannot be had."""

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
    """What to run the engine with. `root` is a folder with bin/pulumi, None for the official one on PATH; `notes` are for the person."""

    root: Path | None
    environment: dict[str, str]
    notes: tuple[str, ...]

    def program(self, tools: Tools) -> str:
        """The command line to run."""
        return "pulumi" if self.root is None else str(tools.binary("pulumi"))

    def command_line_environment(self, home: LabHome, tools: Tools) -> dict[str, str]:
        """What the plain command line needs to run the project's program against the lab: where its state is, and a language host."""
        own = {"PULUMI_BACKEND_URL": state_url(home), "PULUMI_CONFIG_PASSPHRASE": "", "FLEXSPOT_LAB_KUBECONFIG": str(home.kubeconfig)}
        chosen = {name: os.environ[name] for name in ("PULUMI_BACKEND_URL",) if name in os.environ}
        # The stand-in host knows nothing of Pulumi.yaml's virtual environment: it runs the first python on PATH.
        own_hosts = [] if shutil.which("pulumi-language-python") else [str(tools.links / "bin"), str(Path(sys.executable).parent)]
        # The official host runs `uv`, which is here when setting up has brought it.
        folders = [*own_hosts, os.environ.get("PATH", ""), str(tools.links / "uv" / "bin")]
        return {**self.environment, **own, **chosen, "PATH": os.pathsep.join(folders)}


def state_url(home: LabHome) -> str:
    """The file backend that is kept with a lab, so that neither outlives the other."""
    folder = home.folder / "pulumi"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return f"file://{folder}"


@contextmanager
def engine_for(kubeconfig: Path, tools: Tools) -> Generator[Engine]:
    """An engine for programs that deploy to the lab of `kubeconfig`; stand-ins serve while the context lasts."""
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
    # Loads the Kubernetes client, which an offline preview does without.
    from flexspot.lab.providers.kubernetes import KubernetesStandIn  # noqa: PLC0415

    with serve(KubernetesStandIn(kubeconfig)) as port:
        environment["PULUMI_DEBUG_PROVIDERS"] = f"kubernetes:{port}"
        # Nothing is looked for on the network that is known not to be needed.
        environment["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        note = f"not on this machine: {', '.join(missing)}; the lab's own stand in, for this lab alone."
        yield Engine(None if official else tools.links, environment, (note,))


def own_root(tools: Callable[[], Tools]) -> Path | None:
    """The folder of the engine that the lab builds; None where the official command line is here and fits: no `tools` are asked for."""
    found = command_line()
    return None if found is not None and found.fits else tools().links


@contextmanager
def offline_engine(tools: Callable[[], Tools]) -> Generator[Engine]:
    """An engine for previews without any cluster or cloud: providers that echo what they are given and refuse to change anything.

    `tools` are asked for where the official command line is not here or does not fit.
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
        yield Engine(root, environment, ("offline: providers echo their inputs, no cluster and no cloud is asked, no state is kept.",))


def _home_without_logs(folder: Path) -> str:
    """Return a PULUMI_HOME in which the engine cannot write its own log: a file is where it would create the folder of the logs.

    The engine logs each property of each resource, encrypted, and has no option for it: a quarter of its CPU (3.259.0, 2026-11-28).
    For an engine of ours alone: a person's own keeps credentials and plugins in PULUMI_HOME.
    """
    home = folder / "pulumi-home"
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "logs").touch()
    return str(home)


def _missing(found: CommandLine | None) -> str:
    """What of the command line is not here: all of it, or one of a version that programs of the SDK run under."""
    if found is None:
        return "the pulumi command line"
    return f"a pulumi command line of version {sdk_version()} ({found.path} is {found.version})"
