"""`flexspot up`, `preview`, `destroy` and what deployed stacks output, with the stack's access, its cost and questions to the user."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.markup import escape

from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.cost.costed_plan import costed, shipped_use
from flexspot.capacity.cost.plan_cost import plan_cost
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import read_stack_file
from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsError
from flexspot.capacity.values.names import is_production
from flexspot.infra.cli.command_line import AsFormat, Stack, bad_usage, expect, option, planned
from flexspot.infra.cli.console import Table, as_json, change, out, print_table, show, shown_usd
from flexspot.infra.cli.lab import lab_home, ready_tools, show_next_steps
from flexspot.infra.deployment import api_refusals, losses
from flexspot.infra.deployment.api_refusals import ApiRefusals, check_tried
from flexspot.infra.deployment.drift import Drifts
from flexspot.infra.deployment.losses import Losses, check_permissions
from flexspot.infra.deployment.state_file import SCHEME, deployed_resources
from flexspot.infra.loading import require
from flexspot.infra.project import STAND_IN, Project, project_here, without_secrets

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from pulumi.automation import EngineEvent

    from flexspot.capacity.plan.build import StackPlan
    from flexspot.infra.deployment.api_refusals import Refusal
    from flexspot.infra.deployment.drift import Drift
    from flexspot.infra.deployment.engine import StackRun
    from flexspot.infra.deployment.losses import Loss
    from flexspot.lab.tools.build import Tools


Lab = Annotated[str, option("--lab", "The lab that a `cloud: local` stack is deployed to.")]


def stacks(lab: Lab = "default", form: AsFormat = "text") -> None:
    """List the project's stacks: cloud, environment, and what is deployed.

    Asks no cloud. Deployed resources are known only for stacks whose state is in files, such as those in a lab.
    """
    project = project_here()
    found = [_described(project, name, lab) for name in project.stack_names()]
    if form == "json":
        sys.stdout.write(as_json(found))
        return
    rows = [(each["stack"], each["cloud"] or "", each["region"] or "", each["environment"] or "", _deployed(each)) for each in found]
    show("", ("stack", "cloud", "region", "environment", "deployed"), rows)


def _described(project: Project, name: str, lab: str) -> dict[str, Any]:
    """Return a stack's description from its file and state.

    Values are null if the file has problems, or if only a remote backend knows them.
    """
    try:
        settings = read_stack_file(project.stack_file(name))
    except SettingsError as error:
        return {"stack": name, "cloud": None, "region": None, "environment": None, "resources": None, "problems": len(error.problems)}
    backend = os.environ.get("PULUMI_BACKEND_URL")
    if backend is None and settings.cloud is Platform.LOCAL:
        backend = f"{SCHEME}{lab_home(lab).folder / 'pulumi'}"
    return {
        "stack": name,
        "cloud": settings.cloud.value,
        "region": settings.region if isinstance(settings, EksSettings | GkeSettings) else None,
        "environment": settings.environment,
        "resources": deployed_resources(backend, project.name, name),
        "problems": 0,
    }


def _deployed(described: dict[str, Any]) -> str:
    if described["problems"]:
        return f"{described['problems']} problems: flexspot settings check -s {described['stack']}"
    resources = described["resources"]
    if resources is None:
        return f"not known here: flexspot outputs -s {described['stack']}"
    return f"{resources} resources" if resources else "no"


def outputs(stack: Stack, lab: Lab = "default", form: AsFormat = "text") -> None:
    """Print the outputs of a deployed stack.

    Secrets are not shown; `pulumi stack output --show-secrets` shows them.
    """
    found = _outputs(stack, lab)
    if form == "json":
        sys.stdout.write(as_json(found))
        return
    for name, value in found.items():
        out.print(f"{name}: {value if isinstance(value, str) else as_json(value).strip()}", markup=False)


def kubeconfig(stack: Stack, lab: Lab = "default") -> None:
    """Print how kubectl reaches a deployed stack.

    In a lab, this is the path of its kubeconfig; on GKE and EKS, the command that adds the cluster to yours.
    """
    found = _outputs(stack, lab)
    way = found.get("kubeconfig") or found.get("credentials_command")
    if way is None:
        raise ExplainedError(f"stack {stack} has no cluster among its outputs.", "name a stack that declares a platform.")
    sys.stdout.write(f"{way}\n")


def _outputs(stack: str, lab: str) -> dict[str, Any]:
    with stack_run(stack, planned(stack), lab) as run:
        found = run.outputs(secrets=False)
    if not found:
        raise ExplainedError(f"stack {stack} is not deployed.", f"deploy it: flexspot up -s {stack}", exit_code=ExitCode.UNMET)
    return found


def deployable(stack: str) -> StackPlan:
    """Return a stack's settings and plan. Raises ExplainedError if the SDK of its program is missing, and the errors of `planned`."""
    found = planned(stack)
    if isinstance(found.settings, EksSettings | GkeSettings):
        require(f"pulumi_{VOCABULARIES[found.settings.cloud].catalog}")
    return found


@contextmanager
def stack_run(stack: str, found: StackPlan, lab: str) -> Generator[StackRun]:
    """Yield the checked stack with everything that the engine needs to run it."""
    settings = found.settings
    with ExitStack() as resources:
        if isinstance(settings, EksSettings | GkeSettings):
            from flexspot.infra.deployment.engine import cloud_run  # noqa: PLC0415

            run, notes = cloud_run(stack, settings, resources)
            _say(notes)
            yield run
        else:
            yield _local_run(stack, lab, resources)


@contextmanager
def offline_run(stack: str) -> Generator[StackRun]:
    """Yield the stack with offline providers and a temporary backend."""
    from flexspot.infra.deployment.engine import StackRun  # noqa: PLC0415
    from flexspot.lab.engine import offline_engine  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, offline_engine(ready_engine) as engine:
        _say(engine.notes)
        _, secret = without_secrets(project_here().stack_file(stack).read_text(encoding="utf-8"))
        if secret:
            _say((f"offline: the secrets in {', '.join(secret)} are not read; the program gets {STAND_IN!r} for each.",))
        yield StackRun(stack, Path(folder) / "project", f"file://{folder}", engine.root, engine.environment, secrets=False)


def ready_engine() -> Tools:
    """Return the engine alone. An offline preview needs no other program of the lab."""
    from flexspot.lab.tools.build import family_named  # noqa: PLC0415

    return ready_tools((family_named("pulumi"),))


def _say(notes: tuple[str, ...]) -> None:
    for note in notes:
        out.print(f"[dim]{note}[/]")


def _local_run(stack: str, lab: str, resources: ExitStack) -> StackRun:
    """Return a run in a lab. Its state is kept with the lab's own, so that neither outlives the other."""
    from flexspot.infra.declaring.program import KUBECONFIG_VARIABLE  # noqa: PLC0415
    from flexspot.infra.deployment.engine import StackRun  # noqa: PLC0415
    from flexspot.lab.control_plane import LabControlPlane  # noqa: PLC0415
    from flexspot.lab.engine import engine_for, state_url  # noqa: PLC0415

    home = lab_home(lab)
    control_plane = LabControlPlane(home)
    # Before the tools, which are compiled for minutes if they are not in the cache.
    control_plane.require_created()
    tools = ready_tools()
    control_plane.require_running(tools)
    engine = resources.enter_context(engine_for(home.kubeconfig, tools))
    _say(engine.notes)
    os.environ[KUBECONFIG_VARIABLE] = str(home.kubeconfig)
    backend = os.environ.get("PULUMI_BACKEND_URL") or state_url(home)
    return StackRun(stack, home.folder / "project", backend, engine.root, engine.environment)


_MONTHLY_COST = "flexspot:index:MonthlyCost"


class DeployedCost:
    """Cost at the stack's last deployment, read from its resource `monthly-cost` in the engine's events.

    `usd` has amounts by the names of SpendingArgs. It is empty if nothing was deployed.
    """

    def __init__(self) -> None:
        self.usd: dict[str, Decimal] = {}

    def hear(self, event: EngineEvent) -> None:
        """Remember the previous monthly cost when the engine reports the MonthlyCost resource."""
        step = event.resource_pre_event
        old = None if step is None else step.metadata.old
        if old is None or old.type != _MONTHLY_COST:
            return
        spending = cast("dict[str, Any]", (old.inputs or {}).get("environment") or {})
        for name in ("expected_usd", "worst_case_usd"):
            try:
                self.usd[name] = Decimal(str(spending[name]))
            except (KeyError, InvalidOperation):
                # Written in another format by another version. No change is shown then.
                continue


def show_cost_line(planned: StackPlan, deployed: DeployedCost | None = None) -> None:
    """Print the stack's monthly cost in one line, with the change since the last deployment.

    Prints nothing for a lab, whose nodes are fake.
    """
    if not isinstance(planned.settings, EksSettings | GkeSettings):
        return
    cost = plan_cost(costed(planned.plan), planned.prices, shipped_use())
    least, worst_least = ("at least " if each else "" for each in (cost.unknown, cost.unbounded))
    total, before = cost.total, (deployed or DeployedCost()).usd
    worst = f"{worst_least}{shown_usd(total.worst_usd)}{_more(total.worst_usd, before.get('worst_case_usd'))}"
    expected = f"{least}{shown_usd(total.expected_usd)}{_more(total.expected_usd, before.get('expected_usd'))}"
    out.print(f"Cost, USD a month: worst case {worst}, expected {expected}, with nothing running {least}{shown_usd(total.floor_usd)}.")


def _more(now: Decimal, before: Decimal | None) -> str:
    """Return the change since the last deployment. Both sides use the prices of their own day."""
    return "" if before is None else f" ({change(now - before, 'no change')})"


_ROWS = 40


def require_terminal(command: str, *, yes: bool) -> None:
    """Raise ExplainedError (bad usage) if no question can be answered: there is no terminal and no --yes."""
    if not yes and not sys.stdin.isatty():
        raise bad_usage(
            f"`flexspot {command}` asks for confirmation, but there is no terminal to answer at. No state was opened.",
            f"add --yes: flexspot {command} --yes ...",
        )


def ask(question: str, *, yes: bool) -> None:
    """Continue if the answer is yes. Raises ExplainedError (exit code 1) if it is no."""
    if not yes and not typer.confirm(question, default=False):
        raise ExplainedError("the answer was no. Nothing was changed.", "run the same command again and answer yes to make the change.")


def given_answers(made: Sequence[str] | None, not_made: Sequence[str] | None) -> dict[str, str | None]:
    """Return the user's answers about resources that an interrupted run may have created.

    Each URN has the resource's id, or None if it does not exist.
    """
    given: dict[str, str | None] = dict.fromkeys(not_made or [])
    for each in made or []:
        # An id may contain a `=`, a URN does not.
        urn, sign, identity = each.partition("=")
        if not (sign and identity):
            raise bad_usage(f"--made: {each} has no id.", "write --made URN=ID, as in the message that asked for it.")
        if urn in given:
            raise bad_usage(f"--made, --not-made: {urn} has more than one answer.", "give one: --made if it was created, or --not-made.")
        given[urn] = identity
    return given


def show_drift(found: Sequence[Drift], consequence: str) -> None:
    """Print a table of manual changes, or nothing if there are none."""
    if not found:
        return
    rows = [(each.resource, each.path, each.deployed, each.found) for each in found[:_ROWS]]
    table = Table(f"Changed by hand since the last run; {consequence}", ("resource", "field", "deployed", "found"), rows, 4)
    print_table(table, "bold yellow")
    if len(found) > _ROWS:
        out.print(f"and {len(found) - _ROWS} more.")


def show_losses(found: Sequence[Loss]) -> None:
    """Print the deletions that lose data or work, or nothing if there are none."""
    if found:
        out.print("[bold red]This deletes what holds data or work:[/]")
        for line in losses.summary_lines(found):
            out.print(f"  {escape(line)}")


def show_doubts(found: Sequence[Refusal]) -> None:
    """Print changes that a cloud may refuse or leave undone, with what to do instead."""
    for each in found:
        if not each.certain:
            out.print(f"[bold yellow]Not certain:[/] {escape(each.words)}")
            out.print(escape(f"What to do: {each.remedy}"))


Yes = Annotated[bool, option("--yes -y", "Do not ask for confirmation.")]

Made = Annotated[
    list[str] | None,
    option("--made", "A resource that an interrupted run created, with its id. Use it if the command asks for it.", metavar="URN=ID"),
]

NotMade = Annotated[
    list[str] | None,
    option("--not-made", "A resource that an interrupted run did not create. Use it if the command asks for it.", metavar="URN"),
]

AllowReplace = Annotated[
    list[str] | None,
    option(
        "--allow-replace",
        "A resource that may be replaced in production although it holds data or work. Use it if the command asks for it.",
        metavar="KIND=NAME",
    ),
]

TryRefused = Annotated[
    list[str] | None,
    option("--try-refused", "Try a change that the cloud is known to refuse. Use it if the command asks for it.", metavar="RULE"),
]


def preview(
    stack: Stack,
    lab: Lab = "default",
    offline: Annotated[bool, option("--offline", "Use no cluster and no cloud, as if nothing were deployed yet.")] = False,
    refresh: Annotated[
        bool, option("--refresh", "First read what is deployed now, and show what was changed by hand; exit code 1 if anything was.")
    ] = False,
    write_state: Annotated[
        bool, option("--write-state", "With --refresh: write what was read to the state. The next `up` still reverts changes by hand.")
    ] = False,
    plan_out: Annotated[
        Path | None,
        option("--plan-out", "Write the plan to this file, for `flexspot cost`; also when a policy refuses it.", metavar="FILE"),
    ] = None,
    made: Made = None,
    not_made: NotMade = None,
) -> None:
    """Show what `up` would change; a violated policy stops it with exit code 1.

    Changes nothing that is deployed, and the state only with --write-state.
    """
    if offline and refresh:
        raise bad_usage("--offline and --refresh exclude each other: an offline preview reads nothing.", "remove one of them.")
    if write_state and not refresh:
        raise bad_usage("--write-state requires --refresh: otherwise there is nothing to write.", "add --refresh, or remove --write-state.")
    if (made or not_made) and not write_state:
        raise bad_usage("--made and --not-made change the state, but this preview does not write it.", "add --refresh --write-state.")
    found, heard, answers = deployable(stack), Heard(), given_answers(made, not_made)
    with offline_run(stack) if offline else stack_run(stack, found, lab) as run:
        if write_state:
            run.settle(_print_line, answers)
            run.refresh(_print_line, color=out.is_terminal, hear=heard.drifts.hear)
        counts = _previewed(run, found, heard, plan_out=plan_out, refresh=refresh and not write_state)
        show_drift(heard.drifts.found, "`up` would change it back")
        show_losses(heard.losses.found)
        show_doubts(heard.api.found)
        for refused in heard.refusals(found):
            out.print(escape(f"`up` will not do it: {refused.problem}"), *map(escape, refused.evidence), sep="\n  ")
            out.print(escape(f"What to do: {refused.remedy}"))
        _show(counts, "would be")
        show_cost_line(found, heard.cost)
    expect(not (refresh and heard.drifts.found))
    if refresh:
        out.print("nothing was changed by hand.")


def up(
    stack: Stack,
    lab: Lab = "default",
    yes: Yes = False,
    refresh: Annotated[
        bool, option("--refresh/--no-refresh", "First read what is deployed now, and revert what was changed by hand.")
    ] = True,
    made: Made = None,
    not_made: NotMade = None,
    allow_replace: AllowReplace = None,
    try_refused: TryRefused = None,
) -> None:
    """Deploy a stack; a violated policy stops it with exit code 1. Shows what would change and asks before it changes anything.

    In production, clusters, networks, pools, buckets and team storage hold data or work. They are replaced only if --allow-replace names
    them. A run that the cloud is known to refuse halfway starts only if --try-refused names the rule.
    """
    check_permissions(allow_replace or ())
    check_tried(try_refused or ())
    require_terminal("up", yes=yes)
    found, heard = deployable(stack), Heard()
    answers = given_answers(made, not_made)
    with stack_run(stack, found, lab) as run:
        run.settle(_print_line, answers)
        counts = _previewed(run, found, heard, refresh=refresh)
        show_drift(heard.drifts.found, "it is changed back")
        show_losses(heard.losses.found)
        show_doubts(heard.api.found)
        for refused in heard.refusals(found, allow_replace or (), try_refused or ()):
            raise refused
        _show(counts, "would be")
        show_cost_line(found, heard.cost)
        if _changes(counts) or heard.drifts.found:
            ask(f"Deploy this to stack {stack}?", yes=yes)
        _show(run.up(_print_line, color=out.is_terminal, refresh=refresh), "were")
    if found.plan.cloud is Platform.LOCAL:
        show_next_steps(lab_home(lab))


def destroy(stack: Stack, lab: Lab = "default", yes: Yes = False, made: Made = None, not_made: NotMade = None) -> None:
    """Delete every resource of a stack. Shows what would be deleted and asks before it deletes anything."""
    require_terminal("destroy", yes=yes)
    answers = given_answers(made, not_made)
    with stack_run(stack, planned(stack), lab) as run:
        run.settle(_print_line, answers)
        counts = run.preview_destroy(_print_line, color=out.is_terminal)
        _show(counts, "would be")
        if _changes(counts):
            ask(f"Delete all this of stack {stack}? What is in it is lost.", yes=yes)
        _show(run.destroy(_print_line, color=out.is_terminal), "were")


class Heard:
    """Findings from a preview's events: manual changes, losses, refusals of the cloud, and the cost at the last deployment."""

    def __init__(self) -> None:
        self.drifts, self.losses, self.api, self.cost = Drifts(), Losses(), ApiRefusals(), DeployedCost()

    def hear(self, event: EngineEvent) -> None:
        """Read one event of the engine."""
        for each in (self.drifts, self.losses, self.api, self.cost):
            each.hear(event)

    def refusals(self, found: StackPlan, allowed: Sequence[str] = (), tried: Sequence[str] = ()) -> Iterator[ExplainedError]:
        """Yield the reasons why `up` would refuse what was previewed."""
        production = is_production(found.settings.environment)
        for refused in (api_refusals.refusal(self.api.found, tried), losses.refusal(self.losses.found, allowed, production=production)):
            if refused is not None:
                yield refused


def _previewed(run: StackRun, found: StackPlan, heard: Heard, *, plan_out: Path | None = None, refresh: bool) -> Mapping[str, int]:
    """Preview the stack, and return the counts.

    The plan is written for `flexspot cost` even if a policy refuses it, because the cost may be the reason. If the preview fails on a
    protected resource, the losses are printed first.
    """
    from flexspot.infra.declaring.program import PlannedResources, write_plan_file  # noqa: PLC0415

    resources = PlannedResources()

    def hear(event: EngineEvent) -> None:
        resources.hear(event)
        heard.hear(event)

    try:
        return run.preview(_print_line, color=out.is_terminal, hear=hear, refresh=refresh)
    except ExplainedError:
        show_losses(heard.losses.found)
        raise
    finally:
        if plan_out is not None:
            own_prices = found.settings.prices_file
            write_plan_file(plan_out, run.stack, found, resources, None if own_prices is None else project_here().stacks / own_prices)


_REFRESHED = re.compile(r"^ ?~ +\S+ \S+ refresh(ing)?( \(.*\))?$")
"""Lines that the engine prints for each resource that it reads: two for each, without information."""


def _print_line(line: str) -> None:
    if _REFRESHED.match(line.rstrip()):
        return
    sys.stdout.write(line if line.endswith("\n") else f"{line}\n")
    sys.stdout.flush()


_WORDS = {"create": "created", "update": "updated", "delete": "deleted", "replace": "replaced"}


def _changes(changes: Mapping[str, int]) -> bool:
    return any(changes.get(kind) for kind in _WORDS)


def _show(changes: Mapping[str, int], verb: str) -> None:
    counts = [f"{count} {verb} {_WORDS[kind]}" for kind, count in changes.items() if kind in _WORDS and count]
    out.print(", ".join(counts) if counts else "no change.")
