"""A run over a cloud stack: with the official pieces, the person's own credentials and the person's own backend."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from capacity.explained_error import ExitCode, ExplainedError
from capacity.settings.platform import EksSettings
from components.eks.names import partition_of
from infra.checkout import CHECKOUT
from infra.deployment.cloud_access import require_access
from infra.deployment.identifying import Identifying
from infra.deployment.official_pieces import command_line, missing_pieces, sdk_version
from infra.engine import StackRun
from infra.state_file import SCHEME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack

    from capacity.settings.platform import GkeSettings

_SECONDS = 120
_PASSPHRASES = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


def cloud_run(
    stack: str, settings: GkeSettings | EksSettings, answers: Mapping[str, str | None], resources: ExitStack
) -> tuple[StackRun, tuple[str, ...]]:
    """The run, and what to tell the person of who deploys and where the state is. Its files go with `resources`.

    Raises ExplainedError (bad usage) for a missing or unfitting piece, credentials that are not the stack's, and a backend that is not
    there, before any state is opened.
    """
    missing, remedies = missing_pieces(settings.cloud.value)
    if missing:
        raise _refused(
            f"stack {stack} needs the official pieces: {'; '.join(missing)}. No state was opened.", "; ".join(dict.fromkeys(remedies))
        )
    access = require_access(stack, settings)
    backend = _backend(stack)
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
        answers=answers,
        is_local=False,
    )
    newer = _newer()
    return run, (f"as {access.identity}, to {access.place}; the state is in {backend}.", *newer)


def _place(settings: GkeSettings | EksSettings) -> dict[str, str]:
    if not isinstance(settings, EksSettings):
        return {}
    partition = partition_of(settings.region)
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return {"account": settings.account, "partition": partition, "region": settings.region, "dns_suffix": suffix}


def _backend(stack: str) -> str:
    """The address of the backend that the person is logged in to. Asking for it opens no state."""
    found = command_line()
    pulumi = "pulumi" if found is None else found.path
    quiet = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    answered = subprocess.run(  # noqa: S603 -- the program that missing_pieces has found
        [pulumi, "whoami", "--json", "--non-interactive"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env=quiet,
        stdin=subprocess.DEVNULL,
        cwd=tempfile.gettempdir(),
    )
    try:
        said: Any = json.loads(answered.stdout) if answered.returncode == 0 else {}
    except ValueError:
        said = {}
    url = said.get("url")
    if not url:
        told = tuple(line for line in answered.stderr.splitlines() if line.strip())[:5]
        raise _refused(
            f"stack {stack}: Pulumi says of no backend to keep the state in. No state was opened.",
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
        raise _refused(
            f"stack {stack}: the backend {backend} encrypts secrets with a passphrase, and none is given. No state was opened.",
            "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE, or name a key in `secretsprovider` of the stack file.",
        )


def _newer() -> tuple[str, ...]:
    found = command_line()
    if found is None or found.version == sdk_version():
        return ()
    return (f"pulumi {found.written} is newer than the SDK ({'.'.join(map(str, sdk_version()))}), with which it was not tried.",)


def _refused(problem: str, remedy: str, evidence: tuple[str, ...] = ()) -> ExplainedError:
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE, evidence=evidence)
