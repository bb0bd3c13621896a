"""A program, or a script of the person's own, as a request for a job; and the job on the cluster."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import ApiException

from capacity.values.errors import ExitCode, ExplainedError
from capacity.workloads.requests import NAME_LABEL, Launcher
from infra.jobs.access import CONFLICT, JOB, JOB_SET, MAP, POD, WORKLOAD, explained
from infra.jobs.state import ENDED, JobState, states

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from capacity.plan.model import Plan
    from capacity.workloads.pods import KubeObject
    from infra.jobs.access import TeamCluster

SCRIPT_FOLDER = "/opt/flexspot"
"""Where a script is in the container, from a ConfigMap, which goes with its job."""

_INTERPRETERS = {".py": "python", ".sh": "sh"}
_LARGEST_SCRIPT = 900_000
"""Bytes; an object of the API server holds 1 MiB."""

_LONGEST_NAME = 40


@dataclass(frozen=True)
class Script:
    """A script that is sent along: the name of its file and what it says."""

    name: str
    text: str

    @property
    def interpreter(self) -> str:
        """The program that runs it."""
        return _INTERPRETERS[Path(self.name).suffix]


def script_of(command: Sequence[str]) -> Script | None:
    """The script that a command begins with, if it does: a file of this machine that is called .py or .sh.

    Raises ExplainedError for one that is not there, cannot be read, or that no ConfigMap can hold.
    """
    if not command or Path(command[0]).suffix not in _INTERPRETERS:
        return None
    path = Path(command[0])
    if not path.is_file():
        remedy = "give the path of a local script; for a program of the image write its command: -- python train.py."
        raise _unsendable(f"{path} is a folder." if path.is_dir() else f"there is no file {path}.", remedy)
    if (size := path.stat().st_size) > _LARGEST_SCRIPT:
        remedy = "put it into the image, and write its command: -- python train.py."
        raise _unsendable(f"{path} has {size} bytes; at most {_LARGEST_SCRIPT} can be sent.", remedy)
    if not _SENT_AS.fullmatch(path.name):
        raise _unsendable(
            f"{path.name!r} is not a name under which a script can be sent.", "use only letters, digits, dots, hyphens and _."
        )
    try:
        return Script(path.name, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _unsendable(f"{path} cannot be read as text: {error}.", "send a script in UTF-8 that you can read.") from error


_SENT_AS = re.compile(r"[-._a-zA-Z0-9]{1,253}")
"""The key of a ConfigMap (k8s.io/apimachinery, util/validation, IsConfigMapKey)."""


def _unsendable(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)


def name_for(command: Sequence[str]) -> str:
    """A name for the job of a command, after its script or its program; the same command gives the same name, and so resumes."""
    programs = [each for each in command if Path(each).suffix in _INTERPRETERS]
    stem = Path((programs or [*command, "job"])[0]).stem.lower()
    name = re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "job"
    # Kubernetes begins names of Services with a letter.
    return (name if name[0].isalpha() else f"job-{name}")[:_LONGEST_NAME].strip("-")


def command_of(script: Script, arguments: Sequence[str]) -> list[str]:
    """The command of a script where it is in the container; a launcher comes before it as before any command."""
    return [script.interpreter, f"{SCRIPT_FOLDER}/{script.name}", *arguments]


CHECKPOINTED, QUEUED = "checkpointed-job", "queued-job"


def kind_for(plan: Plan, fields: Mapping[str, Any]) -> str:
    """The kind of job: one that resumes where its class keeps checkpoints, else a batch."""
    route = plan.route_of(fields.get("workload_class"))
    resumes = route is not None and route.checkpoint and fields.get("gpus") != 0
    return CHECKPOINTED if resumes else QUEUED


def with_script(kind: str, fields: Mapping[str, Any], script: Script, arguments: Sequence[str]) -> dict[str, Any]:
    """The fields of a job of a kind with a script as its command, and with the volume that holds it.

    Python on several GPUs that train together has a rank on each, unless another launcher is asked for; the image has the runtime then.

    What is not of its field's type is left as it is, for the check of all fields to tell. Raises ExplainedError for a volume in its place.
    """
    counts = [fields.get(each, 1) for each in ("gpus", "pods")]
    # A batch's pods each do their own part, and a shell script starts what it wants to.
    several = kind != QUEUED and script.interpreter == "python" and all(isinstance(each, int) for each in counts) and prod(counts) > 1
    launcher = {"launcher": Launcher.RANKS.value} if several and fields.get("launcher") is None else {}
    volumes = fields.get("volumes", {})
    if isinstance(volumes, dict):
        if SCRIPT_FOLDER in volumes:
            raise _unsendable(f"volumes has something at {SCRIPT_FOLDER}, where the script is put.", "mount it at another path.")
        volumes = {SCRIPT_FOLDER: {"config_map": script_map(str(fields["name"]))}, **volumes}
    return {**fields, **launcher, "command": command_of(script, arguments), "volumes": volumes}


def submit(cluster: TeamCluster, objects: Sequence[KubeObject], script: Script | None) -> list[str]:
    """Creates the jobs, and returns the names of those whose ended predecessors had to go.

    A predecessor goes only when the server would take what comes in its place. Raises ExplainedError for a job of that name which has not
    ended, and for what the cluster refuses: of that nothing is left.
    """
    work = objects[0]["metadata"]["labels"][NAME_LABEL]
    ended = _ended(cluster, work)
    made: list[KubeObject] = []
    try:
        for each in objects if ended else ():
            cluster.create(_under_a_name_of_its_own(each), dry_run=True)
        stop(cluster, ended)
        for each in objects:
            made.append(cluster.create(each))  # noqa: PERF401 -- those before one that is refused are taken back
        if script is not None:
            _send(cluster, work, script, made)
    except (ApiException, ExplainedError) as error:
        for each in made:
            with suppress(ApiException, ExplainedError):
                cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"], each["metadata"]["uid"])
        raise error if isinstance(error, ExplainedError) else explained(error, f"{work} is not submitted") from error
    return [each.name for each in ended]


def _under_a_name_of_its_own(each: KubeObject) -> KubeObject:
    metadata = {key: value for key, value in each["metadata"].items() if key != "name"}
    return {**each, "metadata": {**metadata, "generateName": f"{each['metadata']['name'][:_LONGEST_NAME]}-"}}


def script_map(work: str) -> str:
    """The name of the ConfigMap with a job's script."""
    return f"{work}-script"


def _send(cluster: TeamCluster, work: str, script: Script, jobs: Sequence[KubeObject]) -> None:
    """Puts the script where the jobs look for it; it goes with them. They are there already: who has their name has its script's, too."""
    owners = [
        {"apiVersion": each["apiVersion"], "kind": each["kind"], "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
        for each in jobs
    ]
    metadata = {"name": script_map(work), "namespace": cluster.namespace, "labels": {NAME_LABEL: work}, "ownerReferences": owners}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {script.name: script.text}}
    try:
        cluster.create(made)
    except ApiException as error:
        if error.status != CONFLICT:
            raise
        # What an earlier job of that name has left: its script alone counts.
        cluster.delete(MAP, script_map(work))
        _until(lambda: cluster.find(MAP, script_map(work)) is None, "the end of the earlier script", _WAIT_SECONDS)
        cluster.create(made)


def _ended(cluster: TeamCluster, work: str) -> list[JobState]:
    """The jobs of that name, all of which have ended. Raises ExplainedError for those that have not."""
    found = states_of(cluster, work)
    if going := [each.name for each in found if each.state not in ENDED]:
        remedy = f"`flexspot jobs logs {work}` follows it, `flexspot jobs stop {work}` ends it; --name gives this one another name."
        raise ExplainedError(f"{', '.join(going)} of that name has not finished.", remedy, exit_code=ExitCode.BAD_USAGE)
    return found


def states_of(cluster: TeamCluster, work: str | None = None) -> list[JobState]:
    """The team's jobs, or those of one workload or of one name. Raises ExplainedError where they may not be seen."""
    try:
        return job_states(cluster, work)
    except ApiException as error:
        raise explained(error, "the jobs cannot be seen") from error


def job_states(cluster: TeamCluster, work: str | None = None) -> list[JobState]:
    """The same, where ApiException is the caller's."""
    jobs = [each for kind in (JOB, JOB_SET) for each in cluster.list(kind)]
    found = states(jobs, cluster.list(WORKLOAD), cluster.list(POD))
    return [each for each in found if work is None or work in (each.work, each.name)]


def stop(cluster: TeamCluster, jobs: Sequence[JobState]) -> None:
    """Deletes jobs with their pods, and returns when they are gone: until then two pods could write one checkpoint. Checkpoints stay.

    Raises ExplainedError where the cluster refuses, and where somebody has put another job in the place of one.
    """
    kinds = {"Job": JOB, "JobSet": JOB_SET}
    try:
        for each in jobs:
            cluster.delete(kinds[each.kind], each.name, each.uid)
        patience = _WAIT_SECONDS + max((each.grace_seconds for each in jobs), default=0)
        _until(lambda: all(_is_gone(cluster, kinds[each.kind], each) for each in jobs), "the end of the job and its pods", patience)
    except ApiException as error:
        raise explained(error, "it is not stopped") from error


def _is_gone(cluster: TeamCluster, kind: str, job: JobState) -> bool:
    found = cluster.find(kind, job.name)
    return found is None or found["metadata"]["uid"] != job.uid


_WAIT_SECONDS, _POLL_SECONDS = 150, 0.5
"""The first comes on top of what pods are given to end."""


def _until(is_so: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            remedy = "look again with `flexspot jobs list`."
            raise ExplainedError(f"{what} did not come within {seconds:.0f} s.", remedy, exit_code=ExitCode.BAD_USAGE)
        time.sleep(_POLL_SECONDS)
