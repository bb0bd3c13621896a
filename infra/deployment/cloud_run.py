"""A run over a cloud stack: with the official pieces, the person's own credentials and the person's own backend."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from capacity.settings.platform import EksSettings
from components.eks.names import partition_of
from infra.checkout import CHECKOUT
from infra.deployment.cloud_access import refused, require_access
from infra.deployment.identifying import Identifying
from infra.deployment.official_pieces import asked, command_line, missing_pieces, sdk_version
from infra.engine import StackRun
from infra.state_file import SCHEME

if TYPE_CHECKING:
    from contextlib import ExitStack

    from capacity.settings.platform import GkeSettings
    from infra.deployment.official_pieces import CommandLine

_PASSPHRASES = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


def cloud_run(stack: str, settings: GkeSettings | EksSettings, resources: ExitStack) -> tuple[StackRun, tuple[str, ...]]:
    """The run, and what to tell the person of who deploys and where the state is. Its files go with `resources`.

    Raises ExplainedError (bad usage) for a missing or unfitting piece, credentials that are not the stack's, and a backend that is not
    there, before any state is opened.
    """
    found = command_line()
    missing, remedies = missing_pieces(found, settings.cloud.value)
    if found is None or missing:
        raise refused(stack, f"it needs the official pieces: {'; '.join(missing)}.", "; ".join(remedies))
    access = require_access(stack, settings)
    backend = _backend(stack, found)
    _require_passphrase(stack, backend)
    folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="flexspot-")))
    run = StackRun(
        stack,
        folder / "project",
        # Only of a backend in files can be said what else writes to it.
        backend if backend.startswith(SCHEME) else None,
        None,
        {"PULUMI_SKIP_UPDATE_CHECK": "true"},
        passphrase=None,
        identify=Identifying(_place(settings)).identify,
    )
    notes = [f"as {access.identity}, to {access.place}; the state is in {backend}."]
    if found.version != sdk_version():
        notes.append(f"pulumi {found.version} is newer than the SDK ({sdk_version()}), with which it was not tried.")
    return run, tuple(notes)


def _place(settings: GkeSettings | EksSettings) -> dict[str, str]:
    if not isinstance(settings, EksSettings):
        return {}
    partition = partition_of(settings.region)
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return {"account": settings.account, "partition": partition, "region": settings.region, "dns_suffix": suffix}


def _backend(stack: str, found: CommandLine) -> str:
    """The address of the backend that the person is logged in to. Asking for it opens no state."""
    answered = asked(found.path, "whoami", "--json", "--non-interactive")
    try:
        said: Any = json.loads(answered.stdout) if answered.returncode == 0 else {}
    except ValueError:
        said = {}
    url = said.get("url")
    if not url:
        told = tuple(line for line in answered.stderr.splitlines() if line.strip())[:5]
        raise refused(
            stack,
            "Pulumi names no backend to keep the state in.",
            "log in with `pulumi login`, or name one in PULUMI_BACKEND_URL, and run the same command again.",
            told,
        )
    return str(url)


def _require_passphrase(stack: str, backend: str) -> None:
    """A backend of one's own encrypts with a passphrase unless the stack file names another way; the engine would ask in the middle."""
    if backend.startswith("https://") or any(name in os.environ for name in _PASSPHRASES):
        return
    content: Any = yaml.safe_load((CHECKOUT / "stacks" / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))
    if content.get("secretsprovider", "passphrase") == "passphrase":
        raise refused(
            stack,
            f"the backend {backend} encrypts secrets with a passphrase, and none is given.",
            "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE, or name a key in `secretsprovider` of the stack file.",
        )
