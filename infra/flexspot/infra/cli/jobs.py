"""`flexspot run`, `jobs` and `render`: a team's work, submitted to its queue or printed as YAML."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import yaml

from flexspot.capacity.workloads.kinds import KINDS, manifests_yaml, objects_of, template_yaml
from flexspot.capacity.workloads.requests import WorkloadError
from flexspot.infra.cli.command_line import Format, Stack, bad_usage, expect, option, planned, with_options
from flexspot.infra.cli.console import as_json, out, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.pods import KubeObject
    from flexspot.infra.jobs.access import TeamCluster
    from flexspot.infra.jobs.state import JobState


@dataclass(frozen=True)
class WorkloadOptions:
    """Options that describe a workload. Most are also fields of a request."""

    team: Annotated[str | None, option("--team -t", "The team whose quota and namespace the work uses.")] = None
    workload_class: Annotated[str | None, option("--class -c", "The workload class, such as training.")] = None
    name: Annotated[str | None, option("--name -n", "The name of the workload and its objects.")] = None
    image: Annotated[str | None, option("--image -i", "The container image, with a release tag or a digest.")] = None
    gpus: Annotated[int | None, option("--gpus", "GPUs per pod; a queued-job may have 0. Default: 1.")] = None
    gpu_models: Annotated[
        list[str] | None, option("--gpu", "Use only this GPU model, such as h100 or a100-80gb. Repeatable.", metavar="MODEL")
    ] = None
    gpu_memory_gb: Annotated[int | None, option("--gpu-memory", "Use only GPUs with at least this much memory.", metavar="GB")] = None
    fast_network: Annotated[
        bool | None,
        option(
            "--fast-network/--ordinary-network",
            "Use only pools with EFA, or do not use EFA. Default: EFA for a gang if all its pools have it.",
        ),
    ] = None
    pods: Annotated[int | None, option("--pods", "The number of pods. Default: 1.")] = None
    cpu: Annotated[str | None, option("--cpu", "vCPUs per pod. Default: 3/4 of the machine's, in proportion to its GPUs.")] = None
    memory: Annotated[str | None, option("--memory", "Memory per pod, such as 32Gi. Default: in the same proportion.")] = None
    env: Annotated[list[str] | None, option("--env -e", "An environment variable. Repeatable.", metavar="NAME=VALUE")] = None
    secrets: Annotated[
        list[str] | None, option("--secret", "An environment variable from a key of a Secret. Repeatable.", metavar="NAME=SECRET:KEY")
    ] = None
    image_pull_secrets: Annotated[
        list[str] | None, option("--pull-secret", "A Secret with the credentials of the image registry. Repeatable.", metavar="SECRET")
    ] = None
    capacity: Annotated[list[str] | None, option("--capacity", "Use only this capacity type of the class. Repeatable.")] = None
    launcher: Annotated[
        str | None,
        option("--launcher", "How the program starts on all GPUs: ranks (Trainer, Lightning, accelerate), torchrun, jax or ray."),
    ] = None
    settings: Annotated[
        list[str] | None, option("--set", "Any other input of the kind, with its value as YAML. Repeatable.", metavar="FIELD=VALUE")
    ] = None

    def fields(self, command: list[str] | None) -> dict[str, Any]:
        """Return the fields of a request that are given.

        Raises BadParameter for a value that is not a pair.
        """
        named = {field: value for field, value in asdict(self).items() if field != "settings"}
        pairs = {
            "env": dict(_pair("--env", each) for each in self.env or ()),
            "secrets": dict(_secret(each) for each in self.secrets or ()),
        }
        written = {**named, **pairs, "command": command}
        # An empty list means that the option is not given; 0 and false are values.
        chosen = {field: value for field, value in written.items() if value not in (None, [], {})}
        others = _set(self.settings or ())
        if twice := sorted(chosen.keys() & others.keys()):
            raise typer.BadParameter(f"--set: another option also gives {twice[0]}. Remove one of the two.")
        return chosen | others


def rendered(plan: Plan, kind: str, fields: Mapping[str, Any], cannot: str = "cannot run") -> tuple[KubeObject, ...]:
    """Return a workload's objects. Raises ExplainedError with all problems."""
    try:
        return objects_of(plan, kind, fields)
    except WorkloadError as error:
        evidence = tuple(map(str, error.problems))
        remedy = "fix each line above, then run again; use --set FIELD=VALUE for inputs that have no option."
        raise bad_usage(f"{error.workload} {cannot}.", remedy, evidence=evidence) from error


def _set(settings: Iterable[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for each in settings:
        field, value = _pair("--set", each, "FIELD")
        try:
            given[field] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise typer.BadParameter(f"--set: the value in {each!r} is not YAML: {error}") from error
    return given


def _secret(text: str) -> tuple[str, dict[str, str]]:
    variable, equals, source = text.partition("=")
    name, colon, key = source.partition(":")
    if not all((variable, equals, name, colon, key)):
        raise typer.BadParameter(f"--secret: {text!r} is not NAME=SECRET:KEY. Write for example --secret WANDB_API_KEY=wandb:token.")
    return variable, {"secret": name, "key": key}


def _pair(option: str, text: str, name: str = "NAME") -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not field or not equals:
        raise typer.BadParameter(f"{option}: {text!r} is not {name}=VALUE. Write for example {option} retries=5.")
    return field, value


@with_options("work", WorkloadOptions)
def render(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="checkpointed-job, queued-job, flex-start-job, queue-workers, model-server, notebook or model-cache."
        ),
    ],
    stack: Stack,
    work: WorkloadOptions,
    template: Annotated[bool, option("--template", "Add comments on what to fill in and what is derived.")] = False,
    form: Annotated[Format, option("--format", "text is YAML, json a list of objects.")] = "text",
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The program and its arguments. Default: the image's own command.")
    ] = None,
) -> None:
    """Print the Kubernetes objects of a workload, derived from the stack; submits nothing. Exit code 2 if it cannot run there."""
    given = work.fields(command)
    shown = KINDS[kind].shown if template and kind in KINDS else {}
    objects = rendered(planned(stack).plan, kind, {**shown, **given}, "cannot be rendered")
    if form == "json":
        sys.stdout.write(as_json(objects))
        return
    sys.stdout.write(f"# {KINDS[kind].component}, for the cluster of stacks/Pulumi.{stack}.yaml\n")
    sys.stdout.write(template_yaml(objects) if template else manifests_yaml(objects))


Kubeconfig = Annotated[
    Path | None, option("--kubeconfig", "The kubeconfig file. Default: the one that kubectl would use.", exists=True, dir_okay=False)
]
Context = Annotated[str | None, option("--context", "A context of the kubeconfig. Default: its current one.")]
TeamName = Annotated[str | None, option("--team -t", "The team, and with it the namespace. Default: the context's namespace.")]
Job = Annotated[str, typer.Argument(metavar="NAME", help="The job's name, as `flexspot jobs list` shows it.")]


@with_options("work", WorkloadOptions)
def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="SCRIPT [ARGUMENTS]... | -- COMMAND...", help="A local .py or .sh file, or a command of the image."),
    ],
    work: WorkloadOptions,
    kind: Annotated[
        Literal["checkpointed-job", "queued-job", "flex-start-job"] | None,
        option("--kind", "The kind of job. Default: follows from the class and its checkpoints."),
    ] = None,
    follow: Annotated[
        bool, option("--follow/--no-follow", "Follow the job's state and output. Ctrl-C stops following; the job continues.")
    ] = True,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Submit a job to your team's queue and follow it; exit code 1 if it fails. Options go before the script or command.

    A local script is sent with the job and runs in the image, which must contain what it imports. No stack file is needed.
    """
    given = work.fields(command)
    from flexspot.infra.jobs import submission  # noqa: PLC0415
    from flexspot.infra.jobs.access import connect, platform_of  # noqa: PLC0415

    script = submission.script_of(command)
    cluster = connect(kubeconfig, context, work.team)
    plan = platform_of(cluster)
    classes = [route.workload_class for route in plan.routes if route.queued]
    usual = {
        "team": plan.teams[0].name,
        "name": submission.name_for(command),
        **({"workload_class": "training"} if "training" in classes else {}),
    }
    fields: dict[str, Any] = {**usual, **given}
    chosen = kind or submission.kind_for(plan, fields)
    if script is not None:
        fields = submission.with_script(chosen, fields, script, command[1:])
    objects = rendered(plan, chosen, fields)
    for ended in submission.submit(cluster, objects, script):
        out.print(f"{ended} of an earlier run was deleted; its checkpoints are kept.", highlight=False, markup=False)
    job = str(fields["name"])
    out.print(f"{job} is submitted to the queue of team {plan.teams[0].name}.", highlight=False, markup=False)
    if follow:
        _follow(cluster, job)


def list_jobs(
    team: TeamName = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    form: Annotated[Format, option("--format", "text is a table, json a list.")] = "text",
) -> None:
    """List the team's jobs with their state and the reason."""
    _, found = _jobs(kubeconfig, context, team, None)
    if form == "json":
        sys.stdout.write(as_json([asdict(each) for each in found]))
        return
    rows = [(each.name, each.workload_class, str(each.gpus), f"{each.pods} of {each.of}", str(each.state), each.why) for each in found]
    show("jobs", ("job", "class", "GPUs", "pods", "is", "why"), rows)


def follow_job(name: Job, team: TeamName = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Follow a job to its end: its state, and the output of its first pod. Ctrl-C leaves the job alone; exit code 1 if it fails."""
    cluster, _ = _jobs(kubeconfig, context, team, name)
    _follow(cluster, name)


def stop_job(name: Job, team: TeamName = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Stop a job and delete it with its pods and logs. Its checkpoints stay: a new run with the same name resumes."""
    from flexspot.infra.jobs.submission import stop  # noqa: PLC0415

    cluster, found = _jobs(kubeconfig, context, team, name)
    stop(cluster, found)
    out.print(f"{name} is stopped.", highlight=False, markup=False)


def _jobs(kubeconfig: Path | None, context: str | None, team: str | None, name: str | None) -> tuple[TeamCluster, list[JobState]]:
    """Return the team's jobs, or those of one name. Raises ExplainedError for an unknown name."""
    from flexspot.infra.jobs.access import connect  # noqa: PLC0415
    from flexspot.infra.jobs.submission import states_of  # noqa: PLC0415

    cluster = connect(kubeconfig, context, team)
    found = states_of(cluster, name)
    if name is not None and not found:
        remedy = "see `flexspot jobs list`, or name another team with --team."
        raise bad_usage(f"job {name} does not exist in namespace {cluster.namespace}.", remedy)
    return cluster, found


def _follow(cluster: TeamCluster, work: str) -> None:
    from flexspot.infra.jobs.state import ENDED, State  # noqa: PLC0415
    from flexspot.infra.jobs.submission import follow  # noqa: PLC0415

    def say(words: str) -> None:
        out.print(words, style="bold", highlight=False, markup=False)

    def write(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    ended: State | None = None
    try:
        ended = follow(cluster, work, say, write)
    finally:
        if ended not in ENDED:
            say(f"{work} continues; `flexspot jobs logs {work}` follows it again, `flexspot jobs stop {work}` ends it.")
    expect(ended is not State.FAILED)
