"""`flexspot init`: create a project in a folder, from options and answers."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.command_line import bad_usage, option
from flexspot.infra.cli.console import out
from flexspot.infra.new_project import answers as parts
from flexspot.infra.new_project.answers import checked_gpus, wrong
from flexspot.infra.new_project.files import commands, project_files, reach, refuse_existing_files, usual_files, write_project
from flexspot.infra.project import from_the_root, here

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.infra.new_project.answers import Answers
    from flexspot.infra.new_project.files import Written


def init(
    folder: Annotated[Path, typer.Argument(help="The project's folder; created if it does not exist.")] = Path(),
    cloud: Annotated[Platform | None, option("--cloud -c", "The cloud: gke, eks, or local for only the lab.")] = None,
    name: Annotated[str | None, option("--name", "The project's name. Default: the folder's name.")] = None,
    owner: Annotated[str | None, option("--owner", "The owner of every resource, as a label or tag.")] = None,
    team: Annotated[list[str] | None, option("--team -t", "A team that shares the GPUs. Repeatable.")] = None,
    account: Annotated[str | None, option("--account", "The Google Cloud project, or the AWS account number, of development.")] = None,
    prod_account: Annotated[
        str | None, option("--prod-account", "The same for production. Default on EKS: the development account.")
    ] = None,
    region: Annotated[str | None, option("--region", "The region. Default: us-central1 on GKE, us-east-1 on EKS.")] = None,
    zone: Annotated[
        list[str] | None, option("--zone", "A zone of the region. Repeatable. Default: up to three that offer the machine.")
    ] = None,
    machine: Annotated[str | None, option("--machine -m", "The machine type of the GPU pools. Default: one with a single L4.")] = None,
    dev_gpus: Annotated[
        int | None, option("--dev-gpus", "The most GPUs in development. Default: 4, or the GPUs of one node if that is more.")
    ] = None,
    prod_gpus: Annotated[
        int | None, option("--prod-gpus", "The most Spot GPUs in production. Default: 16, or the GPUs of two nodes if that is more.")
    ] = None,
    cidr: Annotated[
        list[str] | None,
        option(
            "--cidr", "A network that may also reach the API server of development on EKS. Repeatable. Default: none, so it is private."
        ),
    ] = None,
    ci: Annotated[
        Literal["github", "gitlab"], option("--ci", "Host of the reviews: github gets a workflow, gitlab a pipeline.")
    ] = "github",
    yes: Annotated[bool, option("--yes -y", "Ask nothing; use the defaults.")] = False,
) -> None:
    """Create a project: stacks, a program, rules and a workflow. Overwrites nothing.

    The stacks are for development, production and the lab. On a terminal, asks for whatever the options leave open. The stacks are checked
    before they are written, and can be previewed offline at once.
    """
    place = from_the_root(folder)
    refuse_existing_files(place, usual_files(ci))
    ask = Questions(asks=sys.stdin.isatty() and not yes)
    chosen = Platform(ask.answer("--cloud", "Which cloud (gke, eks, local)", cloud, _checked_cloud))
    values = (account, prod_account, region, zone, machine, dev_gpus, prod_gpus, cidr)
    options = zip((*parts.CLOUD_OPTIONS, *parts.EKS_OPTIONS), values, strict=True)
    parts.refuse_inapplicable_options(chosen, [option for option, value in options if value is not None])
    called = ask.answer("--name", "Name of the project", name, parts.checked_name, _default_name(place))
    responsible = ask.answer("--owner", "Owner (a team's name)", owner, parts.checked_owner)
    teams = parts.checked_teams(
        team or [ask.answer("--team", "Teams, separated by commas", None, lambda answer: ",".join(parts.checked_teams([answer])))]
    )
    found = parts.Answers(cloud=chosen, name=called, owner=responsible, teams=teams, host=ci)
    if chosen is not Platform.LOCAL:
        found = _in_cloud(found, ask, (account, prod_account), region, zone or [], machine, (dev_gpus, prod_gpus), cidr or [])
    made = project_files(found)
    _show(folder, place, found, write_project(place, made.files), made.warnings)


def _default_name(place: Path) -> str:
    """Return the folder's name without characters that Pulumi refuses."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", place.name).strip("-.")[:100].rstrip("-.") or "platform"


def _in_cloud(
    found: Answers,
    ask: Questions,
    accounts: tuple[str | None, str | None],
    region: str | None,
    zones: list[str],
    machine: str | None,
    gpus: tuple[int | None, int | None],
    cidrs: list[str],
) -> Answers:
    cloud = found.cloud
    what = "Google Cloud project" if cloud is Platform.GKE else "Number of the AWS account"
    account = ask.answer("--account", f"{what} of development", accounts[0], lambda answer: parts.checked_account(cloud, answer))
    prod_account = ask.answer(
        "--prod-account",
        f"{what} of production",
        accounts[1],
        lambda answer: parts.checked_prod_account(cloud, answer, account),
        account if cloud is Platform.EKS else None,
    )
    where = ask.answer("--region", "Region", region, lambda answer: parts.checked_region(cloud, answer), parts.REGIONS[cloud])
    named = parts.named_zones(cloud, where, zones)

    def checked_machine(answer: str) -> str:
        parts.zones_with(cloud, where, parts.checked_machine(cloud, answer), named)
        return answer

    kind = ask.answer("--machine", "Machine of the GPU pools", machine, checked_machine, parts.MACHINES[cloud])
    placed = replace(
        found,
        account=account,
        prod_account=prod_account,
        region=where,
        machine=kind,
        zones=parts.zones_with(cloud, where, kind, named),
        cidrs=tuple(cidrs),
    )
    per_node = placed.gpus_per_node
    dev = ask.number("--dev-gpus", "The most GPUs of development", gpus[0], per_node, max(4, per_node))
    prod = ask.number("--prod-gpus", "The most GPUs of production on Spot", gpus[1], per_node, max(16, 2 * per_node))
    return replace(placed, dev_gpus=dev, prod_gpus=prod)


class Questions:
    """Answers from options, else from the user at a terminal (asked again until an answer can be used), else defaults."""

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks

    def answer(self, option: str, question: str, given: str | None, check: Callable[[str], str], default: str | None = None) -> str:
        """Return a checked answer. Raises ExplainedError for an unusable option, or a missing one if no questions are asked."""
        if given is not None:
            return check(given)
        if not self.asks:
            if default is None:
                raise bad_usage(f"{option} is required, as this run asks no questions.", f"add {option} ({question}).")
            return check(default)
        while True:
            answer: str = typer.prompt(question, default=default)
            try:
                return check(answer.strip())
            except ExplainedError as error:
                out.print(f"{error.problem} {error.remedy}", markup=False)

    def number(self, option: str, question: str, given: int | None, per_node: int, default: int) -> int:
        """Return a number of GPUs, in whole nodes."""

        def checked(answer: str) -> str:
            try:
                gpus = int(answer)
            except ValueError:
                raise wrong(option, answer, "is not a number", f"set {option} to a whole number of GPUs") from None
            return str(checked_gpus(option, gpus, per_node))

        return int(self.answer(option, question, None if given is None else str(given), checked, str(default - default % per_node)))


def _checked_cloud(answer: str) -> str:
    if answer not in {each.value for each in Platform}:
        raise wrong("--cloud", answer, "is not a cloud", "set --cloud to gke, eks or local")
    return answer


def _show(folder: Path, place: Path, answers: Answers, written: Written, warnings: tuple[str, ...]) -> None:
    out.print(f"{len(written.made)} files are in {place}:", ", ".join(written.made), markup=False)
    for each in written.kept:
        out.print(f"{each} existed before and is unchanged.", markup=False)
    for each in warnings:
        out.print(f"warning: {each}", markup=False)
    first = "local" if answers.cloud is Platform.LOCAL else "dev"
    out.print("\nNext, without any account:")
    if place != here():
        out.print(f"  cd {shlex.quote(str(folder))}", markup=False)
    for line in (f"flexspot settings check -s {first}", f"flexspot preview -s {first} --offline", "flexspot lint ."):
        out.print(f"  {line}", markup=False)
    out.print("\n`up` on this machine's own control plane:\n  flexspot lab start\n  flexspot up -s local")
    if needed := commands(answers):
        out.print("\n`up` in the cloud needs the following, in addition to quotas, which the last command lists:")
        for line in needed:
            out.print(f"  {line}", markup=False)
        out.print(reach(answers), markup=False)
