"""Requirements of a run over a cloud stack: the Pulumi command line and plugins, credentials of the stack's account, a backend."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import yaml

from flexspot.capacity.catalog.account_needs import apis_for
from flexspot.capacity.catalog.platform import VOCABULARIES
from flexspot.capacity.plan.needs import parts_of
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.loading import install
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from flexspot.capacity.catalog.platform import Platform
    from flexspot.capacity.settings.platform import GkeSettings


PULUMI = "3.259.0"
"""Pulumi's version in the lock file, required where no SDK is installed."""

PLUGINS = {"gcp": "10.2.0", "aws": "7.51.1", "kubernetes": "4.34.2"}
"""The provider plugins' versions in the lock file, likewise."""

_VERSION_SECONDS = 60


class Version(NamedTuple):
    """A version as Pulumi numbers its releases. 0.0.0 for a text without one."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        """Return the version as people write it."""
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True)
class CommandLine:
    """The `pulumi` on PATH and its version."""

    path: str
    version: Version

    @property
    def fits(self) -> bool:
        """True if this engine runs programs that use the installed SDK: same major version, and not older than the SDK.

        An SDK needs an engine of at least its own release. The engine supports older SDKs.
        """
        return self.version.major == sdk_version().major and self.version >= sdk_version()


def sdk_version() -> Version:
    """Return the version of the installed Pulumi SDK, or PULUMI if none is installed."""
    try:
        return _version_in(installed("pulumi"))
    except PackageNotFoundError:
        return _version_in(PULUMI)


def command_line() -> CommandLine | None:
    """Return the `pulumi` on PATH. None if it is not installed."""
    path = shutil.which("pulumi")
    return None if path is None else CommandLine(path, _version_in(asked(path, "version").stdout))


def asked(pulumi: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Pulumi command that opens no state, and return its result. Exit status 1 and no output if it cannot run."""
    command = [pulumi, *arguments]
    quiet = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        return subprocess.run(  # noqa: S603 -- what the person has on PATH under this name
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERSION_SECONDS,
            env=quiet,
            stdin=subprocess.DEVNULL,
            cwd=gettempdir(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def plugin_path(name: str) -> Path | None:
    """Return the program of a provider plugin, found as the engine finds it. None if it is missing.

    Any version on PATH is accepted, unless PULUMI_IGNORE_AMBIENT_PLUGINS forbids that. Otherwise the plugin folder must contain the version
    that the SDK requires, completely installed (pulumi 3.259, sdk/go/common/workspace/plugins.go, getPluginInfoAndPath).
    """
    program = f"pulumi-resource-{name}"
    if os.environ.get("PULUMI_IGNORE_AMBIENT_PLUGINS", "").lower() not in {"1", "true"} and (found := shutil.which(program)):
        return Path(found)
    folder = plugin_folder() / f"resource-{name}-v{plugin_version(name)}"
    return folder / program if folder.is_dir() and not folder.with_name(f"{folder.name}.partial").exists() else None


def plugin_version(name: str) -> str:
    """Return the version of a provider plugin that the installed SDK requires, or that of PLUGINS if no SDK is installed."""
    try:
        return installed(f"pulumi-{name}")
    except PackageNotFoundError:
        return PLUGINS[name]


def plugin_folder() -> Path:
    """Return Pulumi's plugin folder."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"


def plugins_of(cloud: Platform) -> tuple[str, str]:
    """Return the names of the provider plugins that a stack of a cloud (gke or eks) needs."""
    return VOCABULARIES[cloud].catalog.value, "kubernetes"


def plugin_command(name: str) -> str:
    """Return the command that installs a provider plugin in the version that the SDK requires."""
    return f"pulumi plugin install resource {name} {plugin_version(name)}"


def missing_pieces(found: CommandLine | None, cloud: Platform) -> tuple[list[str], list[str]]:
    """Return the pieces that a stack of `cloud` (gke or eks) needs and that are missing, and the commands that install them."""
    missing: list[str] = []
    remedies: list[str] = []
    if found is None or not found.fits:
        there = "the pulumi command line is not on PATH"
        if found is not None:
            there = f"{found.path} is version {found.version}, but the SDK needs {sdk_version()} or a later {sdk_version().major}"
        missing.append(there)
        remedies.append(f"install Pulumi {sdk_version()} or later from https://www.pulumi.com/docs/install")
    for name in plugins_of(cloud):
        if plugin_path(name) is None:
            others = sorted(each.name.rpartition("-v")[2] for each in plugin_folder().glob(f"resource-{name}-v*") if each.is_dir())
            instead = f" (there: {', '.join(others)})" if others else ""
            missing.append(f"resource plugin {name} {plugin_version(name)} is neither on PATH nor in {plugin_folder()}{instead}")
            remedies.append(plugin_command(name))
    return missing, remedies


def _version_in(text: str) -> Version:
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return Version(*map(int, found.groups())) if found else Version(0, 0, 0)


PROJECTS_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER"
"""gcloud's own variable for another address of the Resource Manager API."""

SERVICES_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE"
"""gcloud's own variable for another address of the Service Usage API."""

_PROJECTS = "https://cloudresourcemanager.googleapis.com/"
_SERVICES = "https://serviceusage.googleapis.com/"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_SECONDS = 30
_OK = 200
_REFUSED = {401: "the credentials are not accepted", 403: "it does not exist, or this identity may not see it", 404: "it does not exist"}


@dataclass(frozen=True)
class CloudAccess:
    """The caller's identity in a cloud."""

    identity: str
    place: str
    """The account or project, such as `project acme-ai-dev`, with the region."""


def require_access(stack: str, settings: GkeSettings | EksSettings) -> CloudAccess:
    """Return the identity that would deploy `stack`, as the cloud reports it.

    Raises ExplainedError (bad usage) for missing or rejected credentials, and for those of another account.
    """
    return _aws(stack, settings) if isinstance(settings, EksSettings) else _gcp(stack, settings)


def refused(stack: str, problem: str, remedy: str, evidence: tuple[str, ...] = ()) -> ExplainedError:
    """Return the error for a stack that cannot be deployed from here, found before any state was opened."""
    return ExplainedError(f"stack {stack}: {problem} No state was opened.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=evidence)


def _aws(stack: str, settings: EksSettings) -> CloudAccess:
    try:
        import boto3  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError  # noqa: PLC0415
    except ImportError as error:
        raise _without(stack, "boto3", "eks") from error
    remedy = f"log in to account {settings.account}, for example with `aws sso login` and AWS_PROFILE, and run the same command again."
    try:
        sts: Any = cast("Any", boto3).client("sts", region_name=settings.region)
        caller: dict[str, str] = sts.get_caller_identity()
    except NoCredentialsError as error:
        raise refused(stack, "AWS credentials were not found.", remedy) from error
    except (BotoCoreError, ClientError) as error:
        raise refused(stack, f"AWS does not report the owner of the credentials: {error}.", remedy) from error
    if caller["Account"] != settings.account:
        raise refused(
            stack,
            f"the credentials belong to {caller['Arn']} in account {caller['Account']}, but the stack is in account {settings.account}.",
            remedy,
        )
    return CloudAccess(caller["Arn"], f"account {settings.account}, region {settings.region}")


def _gcp(stack: str, settings: GkeSettings) -> CloudAccess:
    try:
        import google.auth  # noqa: PLC0415
        from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError  # noqa: PLC0415
        from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415
        from requests import RequestException  # noqa: PLC0415
    except ImportError as error:
        raise _without(stack, "google-auth", "gke") from error
    login = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS, and run the same command again."
    address = os.environ.get(PROJECTS_VARIABLE) or _PROJECTS
    try:
        credentials: Any = cast("Any", google.auth).default(scopes=[_SCOPE])[0]
        session: Any = cast("Any", AuthorizedSession)(credentials)
        answer: Any = session.get(f"{address.rstrip('/')}/v3/projects/{settings.project}", timeout=_SECONDS)
    except DefaultCredentialsError as error:
        raise refused(stack, "Google Cloud credentials were not found.", login) from error
    except (GoogleAuthError, RequestException) as error:
        raise refused(stack, f"Google Cloud does not accept the credentials: {error}.", login) from error
    identity = str(getattr(credentials, "service_account_email", "") or getattr(credentials, "account", "") or "a user's credentials")
    if answer.status_code != _OK:
        if "SERVICE_DISABLED" in answer.text:
            raise refused(
                stack,
                "the Cloud Resource Manager API is not enabled.",
                f"enable it: gcloud services enable cloudresourcemanager.googleapis.com --project {settings.project}",
            )
        why = _REFUSED.get(answer.status_code, f"Google Cloud answered {answer.status_code}")
        raise refused(
            stack,
            f"{identity} cannot use project {settings.project}: {why}.",
            f"use an identity with resourcemanager.projects.get in {settings.project}, or fix `project` in the stack file.",
        )
    state = str(answer.json().get("state", ""))
    if state != "ACTIVE":
        raise refused(stack, f"project {settings.project} is in state {state or '(unknown)'}.", "use a project that is ACTIVE.")
    _require_apis(stack, settings, session)
    return CloudAccess(identity, f"project {settings.project}, region {settings.region}")


def _require_apis(stack: str, settings: GkeSettings, session: Any) -> None:
    """Raise ExplainedError for APIs of the stack that are not enabled.

    Without this check, a run would fail in the middle, and image streaming would silently not work. One request covers all
    (services.batchGet takes 30). An identity that may not list services continues: the deployment's own errors say more.
    """
    needed = [each.name for each in apis_for(parts_of(settings))]
    address = (os.environ.get(SERVICES_VARIABLE) or _SERVICES).rstrip("/")
    names = [("names", f"projects/{settings.project}/services/{api}") for api in needed]
    answer: Any = session.get(f"{address}/v1/projects/{settings.project}/services:batchGet", params=names, timeout=_SECONDS)
    if answer.status_code != _OK and "SERVICE_DISABLED" not in answer.text:
        return
    services: list[dict[str, Any]] = answer.json().get("services", []) if answer.status_code == _OK else []
    enabled = {str(each["name"]).rpartition("/")[2] for each in services if each.get("state") == "ENABLED"}
    if missing := [api for api in needed if api not in enabled]:
        raise refused(
            stack,
            f"project {settings.project} has not enabled {', '.join(missing)}.",
            f"enable them: gcloud services enable --project {settings.project} {' '.join(missing)}",
        )


def _without(stack: str, library: str, extra: str) -> ExplainedError:
    return refused(stack, f"{library} is not installed, but checking the credentials needs it.", install(extra))


_PASSPHRASES = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


def backend_of(stack: str, found: CommandLine) -> str:
    """Return the address of the backend that the user is logged in to. This opens no state.

    Raises ExplainedError if there is no backend.
    """
    answered = asked(found.path, "whoami", "--json", "--non-interactive")
    try:
        said: dict[str, Any] = json.loads(answered.stdout) if answered.returncode == 0 else {}
    except ValueError:
        said = {}
    url = said.get("url")
    if not url:
        evidence = tuple(line for line in answered.stderr.splitlines() if line.strip())[:5]
        raise refused(
            stack,
            "Pulumi has no backend for the state.",
            "log in with `pulumi login`, or name a backend in PULUMI_BACKEND_URL, and run the same command again.",
            evidence,
        )
    return str(url)


def require_passphrase(stack: str, backend: str) -> None:
    """Raise ExplainedError if the backend needs a passphrase and none is given.

    A self-managed backend encrypts with a passphrase unless the stack file names another way. The engine would prompt in the middle of the
    run.
    """
    if backend.startswith("https://") or any(name in os.environ for name in _PASSPHRASES):
        return
    content: Any = yaml.safe_load(project_here().stack_file(stack).read_text(encoding="utf-8"))
    if content.get("secretsprovider", "passphrase") == "passphrase":
        raise refused(
            stack,
            f"the backend {backend} encrypts secrets with a passphrase, but no passphrase is set.",
            "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE, or name a key in `secretsprovider` of the stack file.",
        )
