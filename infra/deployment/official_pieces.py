"""The official pieces that a stack is deployed with: Pulumi's command line and provider plugins, of the versions that fit the SDKs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

PLUGINS = {"gcp": "10.2.0", "aws": "7.51.1", "kubernetes": "4.34.2"}
"""The versions of the provider plugins that the locked SDKs ask for."""

_SECONDS = 60


@dataclass(frozen=True)
class CommandLine:
    """The `pulumi` on PATH and its version, (0, 0, 0) when it does not say one."""

    path: str
    version: tuple[int, int, int]

    @property
    def written(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.version))

    @property
    def fits(self) -> bool:
        """Whether programs of the installed SDK run under it: the same major version, and not older.

        The SDK asks the engine for what came with its own release; the engine keeps what older SDKs ask for.
        """
        return self.version[0] == sdk_version()[0] and self.version >= sdk_version()


def sdk_version() -> tuple[int, int, int]:
    """The version of the installed Pulumi SDK."""
    return _numbers(version("pulumi"))


def command_line() -> CommandLine | None:
    """The `pulumi` on PATH; None when there is none."""
    path = shutil.which("pulumi")
    if path is None:
        return None
    quiet = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        said = subprocess.run(  # noqa: S603 -- what the person has on PATH under this name
            [path, "version"], capture_output=True, text=True, check=False, timeout=_SECONDS, env=quiet
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    return CommandLine(path, _numbers(said))


def has_plugin(name: str) -> bool:
    """Whether the provider plugin `name` of the version that the SDK asks for is in Pulumi's plugin folder."""
    return (plugin_folder() / f"resource-{name}-v{PLUGINS[name]}").is_dir()


def plugin_folder() -> Path:
    """Where Pulumi keeps its plugins."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"


def missing_pieces(cloud: str) -> tuple[list[str], list[str]]:
    """What a stack of `cloud` (gke or eks) cannot be deployed without and is not here, and the commands that bring it."""
    missing: list[str] = []
    remedies: list[str] = []
    found, wanted = command_line(), ".".join(map(str, sdk_version()))
    if found is None:
        missing.append("the pulumi command line is not on PATH")
        remedies.append(f"install Pulumi {wanted} or later from https://www.pulumi.com/docs/install")
    elif not found.fits:
        missing.append(f"{found.path} is version {found.written}, and the SDK needs {wanted} or a later {sdk_version()[0]}")
        remedies.append(f"install Pulumi {wanted} or later from https://www.pulumi.com/docs/install")
    for name in ({"gke": "gcp", "eks": "aws"}[cloud], "kubernetes"):
        if not has_plugin(name):
            others = sorted(each.name.rpartition("-v")[2] for each in plugin_folder().glob(f"resource-{name}-v*") if each.is_dir())
            instead = f" (there: {', '.join(others)})" if others else ""
            missing.append(f"resource plugin {name} {PLUGINS[name]} is not in {plugin_folder()}{instead}")
            remedies.append(f"pulumi plugin install resource {name} {PLUGINS[name]}")
    return missing, remedies


def _numbers(text: str) -> tuple[int, int, int]:
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)
