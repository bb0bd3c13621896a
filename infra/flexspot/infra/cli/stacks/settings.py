"""`flexspot settings`: checks of a stack file, its requirements of an account, and the schema that editors complete it by."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from flexspot.capacity.catalog.versions import shipped_versions
from flexspot.capacity.plan.model import plan_data
from flexspot.capacity.plan.needs import KEY_ROLE, deployer_services, project_needs, quota_needs
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_schema import stack_file_schema
from flexspot.capacity.values.errors import ExitCode, SettingsError
from flexspot.infra.cli.command_line import AsFormat, Stack, bad_usage, planned
from flexspot.infra.cli.console import as_json, out, show
from flexspot.infra.declaring.rules import checked_stack, rules_in_words
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.account_needs import ProjectNeed
    from flexspot.capacity.plan.billed import AutoProvisionedNodes
    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.plan.needs import HostNeeds, QuotaNeed, ServiceNeed


def check(stack: Stack, form: AsFormat = "text") -> None:
    """Check a stack file and show what follows from it; exit code 2 if it cannot work. Asks no cloud and deploys nothing."""
    if form == "json":
        _check_json(stack)
        return
    found = planned(stack)
    plan = found.plan
    _show_pools(plan)
    _show_teams(plan)
    for line in rules_in_words(found.settings, project_here().stacks):
        out.print(line)
    for warning in plan.warnings:
        out.print(f"[yellow]warning[/] {warning.rule}: {warning.path}: {warning.text}")
    if made := plan.spending.made_by_itself:
        out.print(_made_by_itself(made))
    if following := _next_version(plan):
        out.print(f"Kubernetes {following}: `flexspot versions upgrade -s {stack} --to {following}` shows what it changes", soft_wrap=True)
    ceilings = ", ".join(f"{gpus} x {name}" for name, gpus in plan.accelerators.items())
    out.print(f"stack {stack} can work: at most {ceilings}; {len(plan.warnings)} warning(s).")


def _made_by_itself(made: AutoProvisionedNodes) -> str:
    """Return a sentence about nodes that GKE may create without a pool of the stack, at on-demand prices."""
    room = f"nodes with {made.max_vcpu:,} vCPU and {made.max_memory_gib:,} GiB in all"
    if not made.gpus:
        return f"GKE may make nodes by itself, on demand, for pods that select no pool: {room}, without GPUs."
    gpus = ", ".join(f"{count} x {name}" for name, count in made.gpus)
    return (
        f"GKE may make nodes by itself, on demand, for pods that select no pool: {room}, and up to {gpus}; "
        "cluster.gpu_auto_provisioning: false leaves the GPUs out."
    )


def needs(stack: Stack, form: AsFormat = "text") -> None:
    """Show what a cloud account must allow before a stack's nodes can start: the quotas that its ceilings use.

    Also lists what the deploying user or role needs: on AWS, services with full access; on Google Cloud, roles in the project, and the APIs
    that must be enabled. No cloud is asked. A new account has few GPUs or none, also on Spot. Clouds take days to grant some requests.
    """
    found = planned(stack)
    if isinstance(found.settings, GkeSettings):
        _project_needs(stack, found.plan, found.settings, form)
        return
    if not isinstance(found.settings, EksSettings):
        raise bad_usage(f"stack {stack} is not in a cloud.", "name a stack with cloud: gke or eks.")
    listed, services = quota_needs(found.plan, found.settings), deployer_services(found.settings)
    if form == "json":
        quotas = [_need_data(each) | {"uses": [asdict(use) for use in each.uses]} for each in listed]
        data = {"stack": stack, "account": found.settings.account, "region": found.settings.region, "quotas": quotas}
        sys.stdout.write(as_json(data | {"services": [each.name for each in services]}))
        return
    title = f"AWS services that the deploying role in account {found.settings.account} needs full access to"
    _show_named(title, services)
    # A user or root would work, too, but the creator of a cluster is its administrator for good.
    out.print("aws sts get-caller-identity --query Arn --output text", soft_wrap=True)
    _show_needs(listed, found.settings)
    for each in listed:
        if each.quota and each.beyond_default:
            ask = f"aws service-quotas request-service-quota-increase --region {found.settings.region} --service-code ec2"
            out.print(f"{ask} --quota-code {each.quota.code} --desired-value {each.amount}", soft_wrap=True)


_DEPLOYER = "deployer=$(gcloud config get-value account | sed -E 's/^(.*\\.gserviceaccount\\.com)$/serviceAccount:\\1/; t; s/^/user:/')"
"""Sets `deployer` to the identity that is logged in, with the prefix that Google's policies require."""


def _show_named(title: str, listed: Iterable[ServiceNeed | ProjectNeed]) -> None:
    show(title, ("name", "for"), [(each.name, each.purpose) for each in listed])


def _project_needs(stack: str, plan: Plan, settings: GkeSettings, form: str) -> None:
    needed, project = project_needs(plan, settings), settings.project
    if form == "json":
        named = {"apis": [each.name for each in needed.apis], "roles": [each.name for each in needed.roles]}
        counted = {"quotas": [asdict(each) for each in needed.quotas], "keys": [asdict(each) for each in needed.keys]}
        host = None if needed.host is None else asdict(needed.host)
        data = {"stack": stack, "project": project, "region": settings.region, **named, **counted, "host": host}
        sys.stdout.write(as_json(data))
        return
    _show_named("APIs of the project", needed.apis)
    _show_named("roles of the deploying user, in the project", needed.roles)
    title = f"quotas of GPUs in {settings.region}, in addition to what else runs there"
    show(title, ("GPU", "quota", "at least"), [(each.accelerator, each.quota.value, str(each.gpus)) for each in needed.quotas])
    out.print(f"gcloud services enable --project {project} {' '.join(each.name for each in needed.apis)}", soft_wrap=True)
    out.print(_DEPLOYER, soft_wrap=True)
    for each in needed.roles:
        grant = f"gcloud projects add-iam-policy-binding {project} --condition None"
        out.print(f'{grant} --role {each.name} --member "$deployer"', soft_wrap=True)
    if needed.keys or needed.host:
        # Agents' names contain the project's number, which stack files do not have.
        out.print(f"number=$(gcloud projects describe {project} --format 'value(projectNumber)')", soft_wrap=True)
    for each in needed.keys:
        member = f'"serviceAccount:{each.agent.format(number="${number}")}"'
        out.print(f"gcloud kms keys add-iam-policy-binding {each.key} --role {KEY_ROLE} --member {member}", soft_wrap=True)
    if needed.host is not None:
        _host_needs(needed.host)


def _host_needs(host: HostNeeds) -> None:
    """Print commands for the administrator of a Shared VPC's host project."""
    out.print(f"gcloud services enable --project {host.project} {' '.join(host.apis)}", soft_wrap=True)
    for each in host.grants:
        member = '"$deployer"' if each.agent is None else f'"serviceAccount:{each.agent.format(number="${number}")}"'
        if each.subnetwork is None:
            command = f"gcloud projects add-iam-policy-binding {host.project} --condition None"
        else:
            place = f"--region {host.region} --project {host.project}"
            command = f"gcloud compute networks subnets add-iam-policy-binding {each.subnetwork} {place}"
        out.print(f"{command} --role {each.role} --member {member}", soft_wrap=True)


def schema() -> None:
    """Print the JSON schema of stack files."""
    sys.stdout.write(as_json(stack_file_schema()))


def _next_version(plan: Plan) -> str | None:
    """Return the Kubernetes version after the stack's own, if its parts are known."""
    known = list(shipped_versions().kubernetes)
    place = known.index(plan.versions.kubernetes) + 1 if plan.versions.kubernetes in known else len(known)
    return known[place] if place < len(known) else None


def _check_json(stack: str) -> None:
    path = project_here().stack_file(stack)
    problems: list[dict[str, Any]] = []
    plan: dict[str, Any] | None = None
    try:
        plan = plan_data(checked_stack(path).plan)
    except SettingsError as error:
        problems = [asdict(each) for each in error.problems]
    sys.stdout.write(as_json({"stack": stack, "problems": problems, "plan": plan}))
    if problems:
        raise typer.Exit(ExitCode.BAD_USAGE)


def _need_data(need: QuotaNeed) -> dict[str, Any]:
    known = {name: getattr(need.quota, name, None) for name in ("code", "name", "default")}
    return known | {"at_least": need.amount, "beyond_default": need.beyond_default}


def _show_needs(needs: list[QuotaNeed], settings: EksSettings) -> None:
    rows: list[tuple[Text | str, ...]] = []
    for each in needs:
        quota, colour = each.quota, "yellow" if each.beyond_default else "green"
        name, code, default = (quota.name, quota.code, str(quota.default)) if quota else ("not known which", "", "")
        rows.append((name, code, Text(str(each.amount), colour), default, ", ".join(f"{use.amount} {use.what}" for use in each.uses)))
    title = f"quotas of EC2 for account {settings.account} in {settings.region}, in addition to what else runs there"
    show(title, ("quota", "code", "at least", "unasked", "for"), rows)


def _show_pools(plan: Plan) -> None:
    rows: list[tuple[str, ...]] = []
    for pool in plan.pools:
        gpus = f"{pool.min_nodes * pool.gpus_per_node} to {pool.max_gpus} {pool.gpu_model}"
        rows.append((pool.name, pool.capacity_type, ", ".join(pool.machines), gpus, str(pool.max_nodes), ", ".join(pool.serves)))
    show(f"{plan.cloud} {plan.region}", ("pool", "capacity", "machines", "GPUs", "nodes", "serves"), rows)


def _show_teams(plan: Plan) -> None:
    """Print each team's guaranteed GPUs by flavor, and the most that it can have at once."""
    own = {queue.namespace: {quota.flavor: quota.nominal.gpus for quota in queue.quotas} for queue in plan.queues}
    rows: list[tuple[str, ...]] = []
    for team in plan.teams:
        shares = [str(own.get(team.namespace, {}).get(flavor.name, "")) for flavor in plan.flavors]
        rows.append((team.name, *shares, str(team.unqueued_gpus), str(team.max_gpus)))
    show("guaranteed GPUs", ("team", *(flavor.name for flavor in plan.flavors), "unqueued", "at most"), rows)
