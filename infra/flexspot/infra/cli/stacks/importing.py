"""`flexspot import`: a stack file from a Terraform state or a running cluster. It writes only the files that the options name."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from flexspot.capacity.adopting.cluster_pools import by_kind, read_place
from flexspot.capacity.adopting.found import Block, Found, one_line
from flexspot.capacity.adopting.proposal import ImportOptions, adoption, propose, remark_line, stack_text
from flexspot.capacity.adopting.reading import from_objects, from_state
from flexspot.capacity.adopting.terraform_eks import finish
from flexspot.capacity.adopting.terraform_state import MOST_BYTES, read_state
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.command_line import AsFormat, bad_usage, option
from flexspot.infra.cli.console import new_console, out
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from flexspot.capacity.adopting.proposal import Adoption, Proposal


_STDIN: Final = "-"

CLOUD_IDS, CLUSTER_IDS = "import-cloud.json", "import-cluster.json"
"""Files for `pulumi import --file`: resources in the cloud, and objects in the cluster."""


def import_stack(
    state: Annotated[
        str | None,
        typer.Argument(help="A Terraform state: the output of terraform show -json, or a terraform.tfstate file; - reads standard input."),
    ] = None,
    cluster_too: Annotated[bool, option("--from-cluster", "Read the cluster of the kubeconfig; may be combined with a state.")] = False,
    kubeconfig: Annotated[Path | None, option("--kubeconfig", "The kubeconfig file. Default: the one that kubectl would use.")] = None,
    context: Annotated[str | None, option("--context", "A context of the kubeconfig. Default: its current one.")] = None,
    stack: Annotated[str, option("--stack -s", "The stack's name.")] = "imported",
    owner: Annotated[str | None, option("--owner", "The owner of every resource. Default: the cluster's owner tag.")] = None,
    environment: Annotated[str | None, option("--environment", "The environment. Default: the cluster's environment tag, or dev.")] = None,
    account: Annotated[str | None, option("--account", "The Google Cloud project, or the number of the AWS account.")] = None,
    region: Annotated[str | None, option("--region", "The region. Default: the one in the state or cluster.")] = None,
    cluster: Annotated[str | None, option("--cluster", "The cluster's name. Default: the one in the state or cluster.")] = None,
    out_file: Annotated[Path | None, option("--out", "Write the stack file to this path. Default: print it.", metavar="FILE")] = None,
    ids: Annotated[
        Path | None,
        option(
            "--ids", "Write the ids of resources that can be adopted into files in this folder, for pulumi import --file.", metavar="FOLDER"
        ),
    ] = None,
    form: AsFormat = "text",
) -> None:
    """Propose a stack file for what already runs, from a Terraform state, a cluster, or both.

    Guesses are marked. It lists what it cannot map and what `settings check` refuses, with what to do. It changes nothing in the cloud or
    cluster, and does not read values that the state marks as sensitive. Exit code 2: it found nothing to create a stack from.
    """
    lists = cluster_too or kubeconfig is not None or context is not None
    if state is None and not lists:
        problem = "a state or --from-cluster is required."
        raise bad_usage(problem, "name the file of a Terraform state, or add --from-cluster.")
    for path in (out_file, *((ids / CLOUD_IDS, ids / CLUSTER_IDS) if ids is not None else ())):
        if path is not None and path.exists():
            raise bad_usage(f"{path} already exists.", "name another file, or move it.")
    _known_name(stack)
    found, source = _read(state, kubeconfig if lists else None, context, lists=lists)
    proposal = propose(found, ImportOptions(owner, environment, account, region, cluster))
    adopted = adoption(found, proposal.settings, _project(), stack)
    text = stack_text(proposal, source)
    if out_file is not None:
        _write(out_file, text)
    files = {name: content for name, content in ((CLOUD_IDS, adopted.cloud), (CLUSTER_IDS, adopted.cluster)) if content and ids is not None}
    for name, content in files.items():
        _write((ids or Path()) / name, json.dumps(content, indent=2) + "\n")
    if form == "json":
        sys.stdout.write(json.dumps(_data(stack, proposal, adopted, text), indent=2) + "\n")
        return
    if out_file is None:
        # Only the stack file goes to standard output, so that it can be redirected into a file. The report goes to standard error.
        sys.stdout.write(text)
    _report(proposal, adopted, out_file, [str((ids or Path()) / name) for name in files], stack)


def _known_name(stack: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", stack):
        problem = f"--stack: {stack!r} is not a valid name."
        raise bad_usage(problem, "use only letters, digits, hyphens, underscores and dots, 100 at most.")


def _read(state: str | None, kubeconfig: Path | None, context: str | None, *, lists: bool) -> tuple[Any, str]:
    found, sources = Found(), list[str]()
    if state is not None:
        name = "standard input" if state == _STDIN else state
        from_state(read_state(_content(state), name), found)
        sources.append("a Terraform state")
    if lists:
        from flexspot.infra.audit.cluster_lists import ClusterLists  # noqa: PLC0415
        from flexspot.infra.kubeconfig import access  # noqa: PLC0415

        way = access(kubeconfig, context, also_in_pod=True)
        cluster_lists = ClusterLists(way)
        objects = by_kind([Block(each) for each in cluster_lists.objects()])
        read_place(objects, cluster_lists.listing.version, way.context, found)
        from_objects(objects, found)
        finish(found, None)
        for lack in cluster_lists.listing.lacking:
            found.leave_out(str(lack), "may not be listed with these credentials", "get the permission, or check what the list would show")
        sources.append("a running cluster")
    return found, " and ".join(sources)


def _content(state: str) -> bytes:
    if state == _STDIN:
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    path = Path(state)
    try:
        if not path.is_file():
            raise bad_usage(f"{path} is not a file.", "name the file of a Terraform state.")
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        problem = f"{state!r} cannot be read: {getattr(error, 'strerror', None) or 'it is not a path'}."
        raise bad_usage(problem, "name the file of a Terraform state.") from error


def _project() -> str:
    """Return the name of this project, which URNs begin with; flexspot if there is no project."""
    try:
        return project_here().name
    except ExplainedError:
        return "flexspot"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        problem = f"{path} cannot be written: {error.strerror or error}."
        raise bad_usage(problem, "name a file in a writable folder with free space.") from error


def _data(stack: str, proposal: Proposal, adopted: Adoption, text: str) -> dict[str, Any]:
    return {
        "stack": stack,
        "settings": proposal.settings,
        "guesses": [asdict(each) for each in proposal.guesses],
        "not_mapped": [asdict(each) for each in proposal.remarks],
        "warnings": list(proposal.warnings),
        "import_files": {CLOUD_IDS: adopted.cloud, CLUSTER_IDS: adopted.cluster},
        "elsewhere": [asdict(each) for each in adopted.elsewhere],
        "stack_file": text,
    }


def _report(proposal: Proposal, adopted: Adoption, out_file: Path | None, files: list[str], stack: str) -> None:
    tell = out if out_file is not None else new_console(stderr=True)

    def say(line: str) -> None:
        tell.print(line, markup=False, soft_wrap=True)

    settings = proposal.settings
    say(f"{len(settings['pools'])} pool(s) and {len(settings['teams'])} team(s) are mapped, with {len(proposal.guesses)} guess(es).")
    for guess in proposal.guesses:
        say(one_line(f"guess: {guess.path}: {guess.why}"))
    for remark in proposal.remarks:
        say(f"not mapped: {remark_line(remark)}")
    for warning in proposal.warnings:
        say(one_line(f"warning: {warning}"))
    for each in adopted.adopted:
        anew = "; an `up` replaces it where its service account or Secure Boot is another" if each.type.startswith("gcp:") else ""
        say(one_line(f"can be adopted: {each.type} {each.id}{anew}"))
    for each in adopted.elsewhere:
        say(one_line(f"stays where it is: {each.type} {each.id} ({each.address})"))
    if out_file is not None:
        say(f"Next: flexspot settings check -s {stack}, then flexspot preview -s {stack} --offline")
    for file in files:
        say(f"To adopt: pulumi import --file {file} --stack {stack} (docs/guides/import.md)")
