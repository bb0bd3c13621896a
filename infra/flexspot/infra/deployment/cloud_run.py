"""A run over a cloud stack: one look at who asks the cloud and at the official pieces, then the run over the person's own backend."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.platform import partition_of
from flexspot.capacity.settings.platform import EksSettings
from flexspot.infra.deployment.engine import StackRun
from flexspot.infra.deployment.interrupted import Identifying
from flexspot.infra.deployment.prerequisites import (
    backend_of,
    command_line,
    missing_pieces,
    refused,
    require_access,
    require_passphrase,
    sdk_version,
)
from flexspot.infra.deployment.state_file import SCHEME

if TYPE_CHECKING:
    from contextlib import ExitStack

    from flexspot.capacity.settings.platform import GkeSettings


def cloud_run(stack: str, settings: GkeSettings | EksSettings, resources: ExitStack) -> tuple[StackRun, tuple[str, ...]]:
    """The run, and what to tell the person of who deploys and where the state is. Its files go with `resources`.

    Raises ExplainedError (bad usage) for a missing or unfitting piece, credentials that are not the stack's, and a backend that is not
    there, before any state is opened.
    """
    found = command_line()
    missing, remedies = missing_pieces(found, settings.cloud)
    if found is None or missing:
        raise refused(stack, f"it needs the official pieces: {'; '.join(missing)}.", "; ".join(remedies))
    access = require_access(stack, settings)
    backend = backend_of(stack, found)
    require_passphrase(stack, backend)
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
        notes.append(f"pulumi {found.version} is newer than the SDK ({sdk_version()}), with which it is untested.")
    return run, tuple(notes)


def _place(settings: GkeSettings | EksSettings) -> dict[str, str]:
    if not isinstance(settings, EksSettings):
        return {}
    partition = partition_of(settings.region)
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return {"account": settings.account, "partition": partition, "region": settings.region, "dns_suffix": suffix}
