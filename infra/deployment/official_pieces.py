"""The official pieces that a stack is deployed with: Pulumi's command line and provider plugins, of the versions that fit the SDKs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

PLUGINS = {"gcp": "10.2.0", "aws": "7.51.1", "kubernetes": "4.34.2"}
"""The versions of the provider plugins that the locked SDKs ask for."""

_SECONDS = 60


class Version(NamedTuple):
    """A version as Pulumi numbers its releases; 0.0.0 for what says none."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True)
class CommandLine:
    """The `pulumi` on PATH and its version."""

    path: str
    version: Version

    @property
    def fits(self) -> bool:
        """Whether programs of the installed SDK run under it: the same major version, and not older.

        The SDK asks the engine for what came with its own release; the engine keeps what older SDKs ask for.
        """
        return self.version.major == sdk_version().major and self.version >= sdk_version()


def sdk_version() -> Version:
    """The version of the installed Pulumi SDK."""
    return _version_in(installed("pulumi"))


def command_line() -> CommandLine | None:
    """The `pulumi` on PATH; None when there is none."""
    path = shutil.which("pulumi")
    return None if path is None else CommandLine(path, _version_in(asked(path, "version").stdout))


def asked(pulumi: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a Pulumi command line answers to a question that opens no state; exit status 1 and nothing when it does not run."""
    command = [pulumi, *arguments]
    quiet = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        return subprocess.run(  # noqa: S603 -- what the person has on PATH under this name
            command, capture_output=True, text=True, check=False, timeout=_SECONDS, env=quiet, stdin=subprocess.DEVNULL, cwd=gettempdir()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def has_plugin(name: str) -> bool:
    """Whether the provider plugin `name` of the version that the SDK asks for is in Pulumi's plugin folder."""
    return (plugin_folder() / f"resource-{name}-v{PLUGINS[name]}").is_dir()


def plugin_folder() -> Path:
    """Where Pulumi keeps its plugins."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"


def missing_pieces(found: CommandLine | None, cloud: str) -> tuple[list[str], list[str]]:
    """What a stack of `cloud` (gke or eks) cannot be deployed without and is not here, and the commands that bring it."""
    missing: list[str] = []
    remedies: list[str] = []
    if found is None or not found.fits:
        there = "the pulumi command line is not on PATH"
        if found is not None:
            there = f"{found.path} is version {found.version}, and the SDK needs {sdk_version()} or a later {sdk_version().major}"
        missing.append(there)
        remedies.append(f"install Pulumi {sdk_version()} or later from https://www.pulumi.com/docs/install")
    for name in ({"gke": "gcp", "eks": "aws"}[cloud], "kubernetes"):
        if not has_plugin(name):
            others = sorted(each.name.rpartition("-v")[2] for each in plugin_folder().glob(f"resource-{name}-v*") if each.is_dir())
            instead = f" (there: {', '.join(others)})" if others else ""
            missing.append(f"resource plugin {name} {PLUGINS[name]} is not in {plugin_folder()}{instead}")
            remedies.append(f"pulumi plugin install resource {name} {PLUGINS[name]}")
    return missing, remedies


def _version_in(text: str) -> Version:
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return Version(*map(int, found.groups())) if found else Version(0, 0, 0)
