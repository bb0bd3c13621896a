"""A program, or a script of the person's own, as a request for a job; and the job on the cluster."""

from __future__ import annotations

import re
import time
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import ApiException

from capacity.values.errors import ExitCode, ExplainedError
from capacity.workloads.kinds import objects_of
from capacity.workloads.requests import NAME_LABEL, WorkloadError
from infra.jobs.access import CONFLICT, JOB, JOB_SET, MAP, POD, WORKLOAD, explained
from infra.jobs.state import ENDED, JobState, states

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from capacity.plan.model import Plan
    from infra.jobs.access import KubeObject, TeamCluster

SCRIPT_FOLDER = "/opt/flexspot"
"""Where a script is in the container, from a ConfigMap, which goes with its job."""

_INTERPRETERS = {".py": "python", ".sh": "sh"}
_LARGEST_SCRIPT = 900_000
"""Bytes; an object of the API server holds 1 MiB."""

_LONGEST_NAME = 40


def script_of(command: Sequence[str]) -> Path | None:
    """The script that a command begins with, if it does: a file of this machine that is called .py or .sh.

    Raises ExplainedError for one that is not there, or too large for a ConfigMap.
    """
    if not command or Path(command[0]).suffix not in _INTERPRETERS:
        return None
    script = Path(command[0])
    if not script.is_file():
        remedy = "give the path of a script of this machine; for a program of the image write its command: -- python train.py."
        raise ExplainedError(f"there is no file {script}.", remedy, exit_code=ExitCode.BAD_USAGE)
    if (size := script.stat().st_size) > _LARGEST_SCRIPT:
        remedy = "put it into the image, and write its command: -- python train.py."
        raise ExplainedError(f"{script} has {size} bytes, and {_LARGEST_SCRIPT} can be sent.", remedy, exit_code=ExitCode.BAD_USAGE)
    return script


def name_for(command: Sequence[str]) -> str:
    """A name for the job of a command, after its script or its program; the same command gives the same name, and so resumes."""
    programs = [each for each in command if Path(each).suffix in _INTERPRETERS]
    stem = Path((programs or [*command, "job"])[0]).stem.lower()
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:_LONGEST_NAME].strip("-") or "job"


def command_of(script: Path, arguments: Sequence[str], *, several: bool) -> list[str]:
    """The container's command for a script. With `several` ranks flexspot_runtime, which the image has then, starts one on each GPU."""
    alone = [_INTERPRETERS[script.suffix], f"{SCRIPT_FOLDER}/{script.name}", *arguments]
    if not several or script.suffix != ".py":
        return alone
    return ["python", "-m", "flexspot_runtime.launch", "--ranks=$(NPROC_PER_NODE)", "--", *alone]


def with_script(kind: str, fields: Mapping[str, Any], script: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """The fields of a job of a kind with a script as its command, and with the volume that holds it.

    What is not of its field's type is left as it is, for the check of all fields to tell.
    """
    counts = [fields.get(each, 1) for each in ("gpus", "pods")]
    several = kind != "queued-job" and all(isinstance(each, int) for each in counts) and prod(counts) > 1
    volumes = fields.get("volumes", {})
    if isinstance(volumes, dict):
        volumes = {SCRIPT_FOLDER: {"config_map": script_map(str(fields["name"]))}, **volumes}
    return {**fields, "command": command_of(script, arguments, several=several), "volumes": volumes}


def kind_for(plan: Plan, fields: Mapping[str, Any]) -> str:
    """The kind of job: one that resumes where its class keeps checkpoints, else a batch."""
    route = next((each for each in plan.routes if each.workload_class == fields.get("workload_class")), None)
    return "checkpointed-job" if route is not None and route.checkpoint and fields.get("gpus") != 0 else "queued-job"


def rendered(plan: Plan, kind: str, fields: Mapping[str, Any]) -> tuple[KubeObject, ...]:
    """The job's objects. Raises ExplainedError with all that cannot be."""
    try:
        return objects_of(plan, kind, fields)
    except WorkloadError as error:
        told = tuple(map(str, error.problems))
        remedy = "mend each line above, then run again; --set FIELD=VALUE gives inputs that have no option of their own."
        raise ExplainedError(f"{error.whose} cannot run.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=told) from error


def submit(cluster: TeamCluster, objects: Sequence[KubeObject], script: Path | None) -> list[str]:
    """Creates the objects, and returns the names of those whose ended predecessors had to go.

    Raises ExplainedError for a job of that name which has not ended, and for what the cluster refuses.
    """
    work = objects[0]["metadata"]["labels"][NAME_LABEL]
    replaced = _make_room(cluster, work)
    try:
        if script is not None:
            _send(cluster, work, script)
        made = [cluster.create(each) for each in objects]
        if script is not None:
            owners = [
                {"apiVersion": each["apiVersion"], "kind": each["kind"], "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
                for each in made
            ]
            cluster.patch(MAP, script_map(work), {"metadata": {"ownerReferences": owners}})
    except ApiException as error:
        raise explained(error, f"{work} is not submitted") from error
    return replaced


def script_map(work: str) -> str:
    """The name of the ConfigMap with a job's script."""
    return f"{work}-script"


def _send(cluster: TeamCluster, work: str, script: Path) -> None:
    try:
        text = script.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ExplainedError(f"{script} is no text.", "send a script in UTF-8.", exit_code=ExitCode.BAD_USAGE) from error
    metadata = {"name": script_map(work), "namespace": cluster.namespace, "labels": {NAME_LABEL: work}}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {script.name: text}}
    try:
        cluster.create(made)
    except ApiException as error:
        if error.status != CONFLICT:
            raise
        # What an earlier job of that name has left: its script alone counts.
        cluster.delete(MAP, script_map(work))
        _until(lambda: cluster.find(MAP, script_map(work)) is None, "the end of the earlier script")
        cluster.create(made)


def _make_room(cluster: TeamCluster, work: str) -> list[str]:
    found = states_of(cluster, work)
    if going := [each.name for each in found if each.state not in ENDED]:
        remedy = f"`flexspot jobs logs {work}` follows it, `flexspot jobs stop {work}` ends it; --name gives this one another name."
        raise ExplainedError(f"{', '.join(going)} of that name is not over.", remedy, exit_code=ExitCode.BAD_USAGE)
    stop(cluster, found)
    return [each.name for each in found]


def states_of(cluster: TeamCluster, work: str | None = None) -> list[JobState]:
    """The team's jobs, or those of one workload or of one name. Raises ExplainedError where they may not be seen."""
    try:
        jobs = [each for kind in (JOB, JOB_SET) for each in cluster.list(kind)]
        found = states(jobs, cluster.list(WORKLOAD), cluster.list(POD))
    except ApiException as error:
        raise explained(error, "the jobs cannot be seen") from error
    return [each for each in found if work is None or work in (each.work, each.name)]


def stop(cluster: TeamCluster, jobs: Sequence[JobState]) -> None:
    """Deletes jobs with their pods, and returns when they are gone. Checkpoints stay. Raises ExplainedError where the cluster refuses."""
    kinds = {"Job": JOB, "JobSet": JOB_SET}
    try:
        for each in jobs:
            cluster.delete(kinds[each.kind], each.name)
        _until(lambda: all(cluster.find(kinds[each.kind], each.name) is None for each in jobs), "the end of the job")
    except ApiException as error:
        raise explained(error, "it is not stopped") from error


_WAIT_SECONDS, _POLL_SECONDS = 150, 0.5


def _until(is_so: Any, what: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise ExplainedError(f"{what} did not come within {_WAIT_SECONDS} s.", "look again with `flexspot jobs`.")
        time.sleep(_POLL_SECONDS)
