"""Runs the Pulumi engine over the program through the Automation API, with the policy pack: on a cloud or on the local control plane."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import yaml
from pulumi import automation, log
from pulumi._version import version as version_of_sdk

from flexspot.capacity.catalog.platform import partition_of
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.declaring.program import program_of, settled
from flexspot.infra.declaring.rules import pack_configuration
from flexspot.infra.deployment.interrupted import Existing, Identifying, Settling
from flexspot.infra.deployment.losses import filled_buckets_remedy
from flexspot.infra.deployment.prerequisites import (
    backend_of,
    command_line,
    missing_pieces,
    refused,
    require_access,
    require_passphrase,
    sdk_version,
)
from flexspot.infra.deployment.state_file import SCHEME, may_have_pending_operations, other_runs, repair_state_file, state_file
from flexspot.infra.project import FILE, STACK_CONFIG_DIR, Project, project_here, without_secrets
from flexspot.policies import PROGRAM
from flexspot.policies.engine import PORT, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import ExitStack

    from flexspot.capacity.settings.platform import GkeSettings
    from flexspot.infra.deployment.interrupted import Hear, Identify

_PATIENCE_SECONDS = 15.0
_MOST_LINES = 20


@dataclass(frozen=True)
class StackRun:
    """One stack, and how the engine is run over it."""

    stack: str
    folder: Path
    """Contains copies of the project file and the stack file. The engine's notes in them (an encryption salt) stay out of the originals."""
    backend_url: str | None
    """Location of the state. None for the user's own backend."""
    engine_root: Path | None
    """A folder with bin/pulumi. None for the one on PATH."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the engine's environment."""
    program: Callable[[], None] | None = None
    """Declares the resources. Default: the project's own program."""
    passphrase: str | None = ""
    """Encrypts the state's secrets. None for the user's own settings."""
    identify: Identify = Identifying({}).identify
    """Returns the id of a resource that an interrupted run may have created."""
    project: Project = field(default_factory=project_here)
    secrets: bool = True
    """If False, the engine gets no secret value of the stack file, and needs nothing to decrypt one."""

    def preview(
        self, tell: Callable[[str], None], *, color: bool = False, hear: Hear | None = None, refresh: bool = False
    ) -> Mapping[str, int]:
        """Return the operations that `up` would do, as counts by name (`same`, `create`, `update` ...).

        Raises ExplainedError when the preview fails or a policy forbids it. `hear` receives each of the engine's events. With `refresh` the
        preview compares with the real resources. The state stays unchanged.
        """
        stack = self._stack(tell)
        result = self._judged("preview", stack, stack.preview, on_output=tell, on_event=hear, color=_color(color), refresh=refresh)
        return _by_operation(result.change_summary)

    def up(self, tell: Callable[[str], None], *, color: bool = False, hear: Hear | None = None, refresh: bool = False) -> Mapping[str, int]:
        """Deploy the stack and return the counts by operation. Steps that an interrupted run left open are settled first.

        With `refresh` the real resources are read first, so that manual changes are reverted. Kubernetes objects that are missing in the
        state are added to it again if they belong to this stack.
        """
        stack = self._stack(tell)
        self._settle(stack, tell)
        taken_in: set[str] = set()
        while True:
            existing = Existing(hear)
            changes = _Changes(existing.hear)
            try:
                self._judged("up", stack, stack.up, on_output=tell, on_event=changes.hear, color=_color(color), refresh=refresh)
            except ExplainedError:
                new = self._settling(stack, tell).take_in([each for each in existing.found if each.urn not in taken_in])
                if not new:
                    raise
                taken_in |= new
            else:
                return changes.counted

    def preview_destroy(self, tell: Callable[[str], None], *, color: bool = False) -> Mapping[str, int]:
        """Return the operations that `destroy` would do, as counts by name."""
        stack = self._stack(tell)
        result = self._explained("preview of destroy", lambda: stack.preview_destroy(on_output=tell, color=_color(color)))
        return _by_operation(result.change_summary)

    def destroy(self, tell: Callable[[str], None], *, color: bool = False) -> Mapping[str, int]:
        """Delete every resource of the stack and return the counts by operation. The stack itself stays."""
        stack, changes = self._stack(tell), _Changes()
        self._settle(stack, tell)
        self._explained("destroy", lambda: stack.destroy(on_output=tell, on_event=changes.hear, color=_color(color)))
        return changes.counted

    def refresh(self, tell: Callable[[str], None], *, color: bool = False, hear: Hear | None = None) -> Mapping[str, int]:
        """Read manual changes into the state and return the counts by operation. The next `up` reverts them."""
        stack, changes = self._stack(tell), _Changes(hear)
        self._settle(stack, tell)
        self._explained("refresh", lambda: stack.refresh(on_output=tell, on_event=changes.hear, color=_color(color)))
        return changes.counted

    def settle(self, tell: Callable[[str], None], answers: Mapping[str, str | None]) -> None:
        """Find out what an interrupted run created, and record it in the state. Do nothing after a run that ended by itself.

        `answers` come from the user: ids by URN, None for a resource that was not created. Raises ExplainedError with a remedy for
        resources that cannot be identified, and for answers about resources that are not pending.
        """
        self._settle(self._stack(tell), tell, answers)

    def outputs(self, *, secrets: bool = True) -> dict[str, Any]:
        """Return the stack's outputs. Without `secrets`, each secret is replaced by "[secret]"."""
        found = self._stack(lambda _: None).workspace.stack_outputs(self.stack)
        return {name: output.value if secrets or not output.secret else "[secret]" for name, output in found.items()}

    def _judged(self, operation: str, stack: automation.Stack, act: Callable[..., Any], **options: Any) -> Any:
        """Run an operation under the policy pack, configured by the stack's own rules file.

        This process serves the pack, since it has loaded the rules already. Another process would need half a second of CPU for that.
        """
        written = pack_configuration(self.project.stack_file(self.stack), self.folder)
        options |= {"policy_packs": [str(PROGRAM)], "policy_pack_configs": [] if written is None else [str(written)]}
        with served() as port:
            stack.workspace.env_vars = {**stack.workspace.env_vars, PORT: str(port)}
            return self._explained(operation, lambda: act(**options))

    def _stack(self, tell: Callable[[str], None]) -> automation.Stack:
        self._copy_project()
        environment = dict(self.environment)
        if self.backend_url is not None:
            environment["PULUMI_BACKEND_URL"] = self.backend_url
        if self.passphrase is not None:
            # The local stack's salt fits the empty passphrase, and not one that the user has set for other stacks.
            environment["PULUMI_CONFIG_PASSPHRASE"] = self.passphrase
        # The engine's notes in the copy of the stack file at the first run are also in the state.
        environment["PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER"] = "true"
        program = settled(self.program or program_of(self.project))
        # The SDK logs five debug messages per resource, and the program waits for each. Only an engine in debug mode would show them.
        log.debug = _unsent
        workspace = automation.LocalWorkspace(
            work_dir=str(self.folder), program=program, env_vars=environment, pulumi_command=_CommandLine(self.engine_root)
        )
        self._wait_for_others()
        if fixed := repair_state_file(self.backend_url, self.project.name, self.stack):
            tell(fixed)
        if not self._is_in_a_file:
            self._explained("preview", lambda: self._create(workspace))
        return _Stack(self.stack, workspace)

    @property
    def _is_in_a_file(self) -> bool:
        state = state_file(self.backend_url, self.project.name, self.stack)
        return state is not None and state.is_file()

    def _create(self, workspace: automation.LocalWorkspace) -> None:
        """Create the stack unless it exists. A file backend is not queried first: the caller has seen that there is no file."""
        if not (self.backend_url or "").startswith(SCHEME):
            with suppress(automation.StackNotFoundError):
                workspace.select_stack(self.stack)
                return
        with suppress(automation.StackAlreadyExistsError):
            workspace.create_stack(self.stack)

    def _copy_project(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The copy of the stack file is in the same folder.
        content = {key: value for key, value in self.project.content.items() if key != STACK_CONFIG_DIR}
        (self.folder / FILE).write_text(yaml.safe_dump(content), encoding="utf-8")
        source = self.project.stack_file(self.stack)
        if self.secrets:
            shutil.copyfile(source, self.folder / source.name)
        else:
            (self.folder / source.name).write_text(without_secrets(source.read_text(encoding="utf-8"))[0], encoding="utf-8")

    def _settle(self, stack: automation.Stack, tell: Callable[[str], None], answers: Mapping[str, str | None] | None = None) -> None:
        if answers or may_have_pending_operations(self.backend_url, self.project.name, self.stack):
            self._settling(stack, tell).settle(self.identify, answers or {})

    def _settling(self, stack: automation.Stack, tell: Callable[[str], None]) -> Settling:
        return Settling(stack, lambda: self._explained("refresh", lambda: stack.refresh(on_output=tell)), tell)

    def _wait_for_others(self) -> None:
        """Wait until no other run writes to the backend. Raise ExplainedError if one still does after a while.

        Checked before the engine reads the state, which it could otherwise find half-written.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while living := other_runs(self.backend_url):
            if time.monotonic() > deadline:
                raise self._held_by(living)
            time.sleep(0.2)

    def _held_by(self, processes: Iterable[int]) -> ExplainedError:
        return ExplainedError(
            f"stack {self.stack} is being changed by another run (process {', '.join(map(str, sorted(processes))) or 'unknown'}).",
            "wait until it has ended, and run the same command again; nothing was changed.",
        )

    def _explained(self, operation: str, act: Callable[[], Any]) -> Any:
        try:
            return _interruptible(act)
        except automation.CommandError as error:
            if isinstance(error, automation.ConcurrentUpdateError) or "currently locked" in str(error):
                raise self._held_by(other_runs(self.backend_url)) from error
            evidence = _errors_in(str(error))
            raise ExplainedError(f"{operation} of stack {self.stack} failed.", _remedy(str(error)), evidence=evidence) from error


class _Stack(automation.Stack):
    """A stack that exists, and that is not queried after a run: the run's events contain its changes.

    The SDK asks the command line for the outputs, twice, and for the history. Each call reads and decrypts the whole state: together 3 s of
    CPU for the 250 resources of dev-eks (3.259.0, 2026-11-28).
    """

    def __init__(self, name: str, workspace: automation.Workspace) -> None:
        self.name, self.workspace = name, workspace

    def outputs(self) -> automation.OutputMap:
        """Return nothing. Use `workspace.stack_outputs` instead."""
        return {}

    def info(self, show_secrets: bool = True) -> automation.UpdateSummary:  # noqa: FBT001, FBT002, ARG002 -- as the SDK has it
        """Return a summary that says only that the run succeeded."""
        return automation.UpdateSummary(
            kind="update", start_time=datetime.now(UTC), message="", environment={}, config={}, result="succeeded"
        )


class _Changes:
    """Records the summary's counts by operation from the engine's events, and passes each event on."""

    def __init__(self, hear: Hear | None = None) -> None:
        self._hear = hear
        self.counted: Mapping[str, int] = {}

    def hear(self, event: automation.EngineEvent) -> None:
        """Record one event and pass it on."""
        if event.summary_event is not None:
            self.counted = _by_operation(event.summary_event.resource_changes)
        if self._hear is not None:
            self._hear(event)


def _by_operation(changes: Mapping[automation.OpType, int]) -> dict[str, int]:
    return {str(getattr(kind, "value", kind)): count for kind, count in changes.items()}


def _unsent(*_message: object, **_about: object) -> None:
    """Drop a debug message. Replaces the SDK's `log.debug`."""


class _CommandLine(automation.PulumiCommand):
    """The engine's command line, with a version that the SDK need not query: the caller has checked that it is supported."""

    def __init__(self, root: Path | None) -> None:
        self.command = "pulumi" if root is None else str(root / "bin" / "pulumi")
        self.version = version_of_sdk


def _interruptible(act: Callable[[], Any]) -> Any:
    """Run `act` in a thread, so that an interruption stops the engine in order and waits until it has stopped.

    The Automation API itself would close the engine's output, and leave its work half-recorded.
    """
    with ThreadPoolExecutor(1) as worker:
        doing = worker.submit(act)
        try:
            while not doing.done():
                wait([doing], timeout=0.2)
        except BaseException:
            _end_engine()
            raise
        return doing.result()


def _end_engine() -> None:
    """Send SIGINT to the engine's processes, and kill those that still run after a minute."""
    engines = [process for process in psutil.Process().children(recursive=True) if process.name() == "pulumi"]
    for process in engines:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGINT)
    _, left = psutil.wait_procs(engines, timeout=60)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _color(color: bool) -> str:  # noqa: FBT001 -- the one thing it is about
    return "always" if color else "never"


def _errors_in(text: str) -> tuple[str, ...]:
    """Return the lines that say what went wrong, without duplicates: violated policies if there are any, else errors, else everything."""
    if "[mandatory]" in text:
        verdicts = text.rpartition("Policies:")[2].partition("Outputs:")[0].partition("Resources:")[0].partition("Diagnostics:")[0]
        return tuple(dict.fromkeys(line.strip() for line in verdicts.splitlines() if line.strip()))[:_MOST_LINES]
    lines = [line.strip() for line in text.rpartition("Diagnostics:")[2].splitlines()]
    wrong = [line for line in lines if line.startswith(("error:", "* "))]
    specific = [line for line in wrong if not line.endswith(("update failed", "preview failed", "1 error occurred:", "context canceled"))]
    # If no line is specific, show all lines rather than none.
    return tuple(dict.fromkeys(specific or wrong or [line for line in lines if line]))[:_MOST_LINES]


def _remedy(text: str) -> str:
    if "[mandatory]" in text:
        return "fix what the policies report above; nothing that they refused was deployed."
    if "marked for protection" in text or "because it is protected" in text:
        return (
            "undo the change; or, if it is intended, first run `up` with `cluster.deletion_protection: false` as the only change, "
            "and then this one."
        )
    if filled := filled_buckets_remedy(text):
        return filled
    return "read the messages above, fix the cause and run the same command again: it continues where this run stopped."


def cloud_run(stack: str, settings: GkeSettings | EksSettings, resources: ExitStack) -> tuple[StackRun, tuple[str, ...]]:
    """Return the run, and notes about the deploying identity and the state's location. Its files are deleted with `resources`.

    Raises ExplainedError (bad usage) before any state is opened: for a missing or unsupported piece, credentials of another account, and a
    missing backend.
    """
    found = command_line()
    missing, remedies = missing_pieces(found, settings.cloud)
    if found is None or missing:
        raise refused(stack, f"the Pulumi command line or its plugins are missing: {'; '.join(missing)}.", "; ".join(remedies))
    access = require_access(stack, settings)
    backend = backend_of(stack, found)
    require_passphrase(stack, backend)
    folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="flexspot-")))
    run = StackRun(
        stack,
        folder / "project",
        # Other writers can be found only for a backend in files.
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
