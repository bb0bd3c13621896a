"""Programs and local scripts as requests for jobs; submitting, following and stopping jobs on the cluster."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import ApiException

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.workloads.requests import CONTAINER, INDEX_ANNOTATION, NAME_LABEL, Launcher
from flexspot.infra.jobs.access import CONFLICT, JOB, JOB_SET, MAP, POD, WORKLOAD, explained, is_passing, message_of
from flexspot.infra.jobs.state import ENDED, POD_LABELS, JobState, State, pods_of, states

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.pods import KubeObject
    from flexspot.infra.jobs.access import TeamCluster


SCRIPT_FOLDER = "/opt/flexspot"
"""Folder of a script in the container. It is mounted from a ConfigMap that is deleted with its job."""

_INTERPRETERS = {".py": "python", ".sh": "sh"}
_LARGEST_SCRIPT = 900_000
"""Bytes. An object of the API server holds at most 1 MiB."""

_LONGEST_NAME = 40


@dataclass(frozen=True)
class Script:
    """A local script that is sent with its job: its file name and text."""

    name: str
    text: str

    @property
    def interpreter(self) -> str:
        """The program that runs it."""
        return _INTERPRETERS[Path(self.name).suffix]


def script_of(command: Sequence[str]) -> Script | None:
    """Return the script that a command begins with: a local file named .py or .sh. None if it begins with a program.

    Raises ExplainedError for a script that does not exist, cannot be read, or does not fit into a ConfigMap.
    """
    if not command or Path(command[0]).suffix not in _INTERPRETERS:
        return None
    path = Path(command[0])
    if not path.is_file():
        remedy = "give the path of a local script; for a program in the image, give its command: -- python train.py."
        raise _unsendable(f"{path} is a folder, not a script." if path.is_dir() else f"{path} does not exist.", remedy)
    if (size := path.stat().st_size) > _LARGEST_SCRIPT:
        remedy = "put it into the image, and give its command: -- python train.py."
        raise _unsendable(f"{path} is too large: {size} bytes, at most {_LARGEST_SCRIPT} can be sent.", remedy)
    if not _SENT_AS.fullmatch(path.name):
        raise _unsendable(
            f"{path.name!r} is not a valid name for a sent script.", "rename it: use only letters, digits, dots, hyphens and _."
        )
    try:
        return Script(path.name, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _unsendable(f"{path} cannot be read as text: {error}.", "give a UTF-8 script that you can read.") from error


_SENT_AS = re.compile(r"[-._a-zA-Z0-9]{1,253}")
"""Pattern of a ConfigMap's keys (k8s.io/apimachinery, util/validation, IsConfigMapKey)."""


def _unsendable(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)


def name_for(command: Sequence[str]) -> str:
    """Return a name for the job of a command, from its script or program. The same command has the same name and therefore resumes."""
    programs = [each for each in command if Path(each).suffix in _INTERPRETERS]
    stem = Path((programs or [*command, "job"])[0]).stem.lower()
    name = re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "job"
    # Names of Services must begin with a letter.
    return (name if name[0].isalpha() else f"job-{name}")[:_LONGEST_NAME].strip("-")


def command_of(script: Script, arguments: Sequence[str]) -> list[str]:
    """Return the command of a script in the container. A launcher is prepended later, as to any command."""
    return [script.interpreter, f"{SCRIPT_FOLDER}/{script.name}", *arguments]


CHECKPOINTED, QUEUED = "checkpointed-job", "queued-job"


def kind_for(plan: Plan, fields: Mapping[str, Any]) -> str:
    """Return the kind of job: one that resumes if its class keeps checkpoints, otherwise a batch."""
    route = plan.route_of(fields.get("workload_class"))
    resumes = route is not None and route.checkpoint and fields.get("gpus") != 0
    return CHECKPOINTED if resumes else QUEUED


def with_script(kind: str, fields: Mapping[str, Any], script: Script, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a job with a script as its command and with the script's volume.

    A Python script on several GPUs gets one rank per GPU unless another launcher is requested, which requires the runtime in the image.
    Fields of a wrong type are left unchanged for the later check of all fields. Raises ExplainedError for a volume at the script's path.
    """
    counts = [fields.get(each, 1) for each in ("gpus", "pods")]
    # Pods of a batch work independently, and a shell script starts its own processes.
    several = kind != QUEUED and script.interpreter == "python" and all(isinstance(each, int) for each in counts) and prod(counts) > 1
    launcher = {"launcher": Launcher.RANKS.value} if several and fields.get("launcher") is None else {}
    volumes = fields.get("volumes", {})
    if isinstance(volumes, dict):
        if SCRIPT_FOLDER in volumes:
            raise _unsendable(f"volumes: {SCRIPT_FOLDER} is the folder of the script.", "mount the volume at another path.")
        volumes = {SCRIPT_FOLDER: {"config_map": script_map(str(fields["name"]))}, **volumes}
    return {**fields, **launcher, "command": command_of(script, arguments), "volumes": volumes}


def submit(cluster: TeamCluster, objects: Sequence[KubeObject], script: Script | None) -> list[str]:
    """Create the jobs, and return the names of finished predecessors that were deleted.

    A predecessor is deleted only if a dry run shows that the server accepts its successor. Raises ExplainedError for a job of that name
    that has not ended, and for a refusal by the cluster; created objects are then deleted again.
    """
    work = objects[0]["metadata"]["labels"][NAME_LABEL]
    ended = _ended(cluster, work)
    made: list[KubeObject] = []
    try:
        for each in objects if ended else ():
            cluster.create(_with_generated_name(each), dry_run=True)
        stop(cluster, ended)
        for each in objects:
            made.append(cluster.create(each))  # noqa: PERF401 -- after a refusal, those created before are deleted
        if script is not None:
            _send(cluster, work, script, made)
    except (ApiException, ExplainedError) as error:
        for each in made:
            with suppress(ApiException, ExplainedError):
                cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"], each["metadata"]["uid"])
        raise error if isinstance(error, ExplainedError) else explained(error, f"{work} was not submitted") from error
    return [each.name for each in ended]


def _with_generated_name(each: KubeObject) -> KubeObject:
    metadata = {key: value for key, value in each["metadata"].items() if key != "name"}
    return {**each, "metadata": {**metadata, "generateName": f"{each['metadata']['name'][:_LONGEST_NAME]}-"}}


def script_map(work: str) -> str:
    """Return the name of the ConfigMap with a job's script."""
    return f"{work}-script"


def _send(cluster: TeamCluster, work: str, script: Script, jobs: Sequence[KubeObject]) -> None:
    """Create the script's ConfigMap, owned by the jobs.

    The jobs are created first: of two submissions with the same name, only one creates them and may write the ConfigMap.
    """
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
        # An earlier job of that name left its ConfigMap: replace it.
        cluster.delete(MAP, script_map(work))
        _until(lambda: cluster.find(MAP, script_map(work)) is None, "earlier script", _WAIT_SECONDS)
        cluster.create(made)


def _ended(cluster: TeamCluster, work: str) -> list[JobState]:
    """Return the jobs of that name. Raises ExplainedError if one has not ended."""
    found = states_of(cluster, work)
    if going := [each.name for each in found if each.state not in ENDED]:
        remedy = f"follow it with `flexspot jobs logs {work}`, end it with `flexspot jobs stop {work}`, or give this job another --name."
        raise ExplainedError(f"{', '.join(going)}: a job of this name has not finished.", remedy, exit_code=ExitCode.BAD_USAGE)
    return found


def states_of(cluster: TeamCluster, work: str | None = None) -> list[JobState]:
    """Return the team's jobs, or those of one workload or name. Raises ExplainedError if they may not be listed."""
    try:
        return job_states(cluster, work)
    except ApiException as error:
        raise explained(error, "the jobs cannot be listed") from error


def job_states(cluster: TeamCluster, work: str | None = None) -> list[JobState]:
    """Return the same as `states_of`, but raise ApiException."""
    jobs = [each for kind in (JOB, JOB_SET) for each in cluster.list(kind)]
    found = states(jobs, cluster.list(WORKLOAD), cluster.list(POD))
    return [each for each in found if work is None or work in (each.work, each.name)]


def stop(cluster: TeamCluster, jobs: Sequence[JobState]) -> None:
    """Delete jobs with their pods, but not their checkpoints. Return when all are gone: until then two pods could write one checkpoint.

    Raises ExplainedError if the cluster refuses, or if another job has replaced one of them.
    """
    kinds = {"Job": JOB, "JobSet": JOB_SET}
    try:
        for each in jobs:
            cluster.delete(kinds[each.kind], each.name, each.uid)
        patience = _WAIT_SECONDS + max((each.grace_seconds for each in jobs), default=0)
        _until(lambda: all(_is_gone(cluster, kinds[each.kind], each) for each in jobs), "job and its pods", patience)
    except ApiException as error:
        raise explained(error, "the job was not stopped") from error


def _is_gone(cluster: TeamCluster, kind: str, job: JobState) -> bool:
    found = cluster.find(kind, job.name)
    return found is None or found["metadata"]["uid"] != job.uid


_WAIT_SECONDS, _GONE_POLL_SECONDS = 150, 0.5
"""The first is added to the grace period of the pods."""


def _until(is_so: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            remedy = "check again with `flexspot jobs list`."
            raise ExplainedError(f"{what}: the deletion did not finish within {seconds:.0f} s.", remedy, exit_code=ExitCode.BAD_USAGE)
        time.sleep(_GONE_POLL_SECONDS)


_POLL_SECONDS = 2.0
_PATIENCE_SECONDS = 300.0
_EARLIER_LINES = 1000
_OVERLAP_SECONDS = 5
"""Overlap of successive requests for lines. Lines in the overlap are shown once."""


class LogTail:
    """New lines of one pod's output. The first request returns at most the last thousand lines."""

    def __init__(self, cluster: TeamCluster, pod: str) -> None:
        self.pod = pod
        self._cluster = cluster
        self._last, self._shown = "", set[str]()
        self._asked: float | None = None

    def fresh(self) -> list[str]:
        """Return the next lines, without their timestamps. Raises ApiException if the output is not available."""
        since = None if self._asked is None else int(time.monotonic() - self._asked) + _OVERLAP_SECONDS
        now = time.monotonic()
        text = self._cluster.log(self.pod, CONTAINER, since_seconds=since, tail=_EARLIER_LINES if self._asked is None else None)
        self._asked = now
        return self.unseen(text)

    def unseen(self, text: str) -> list[str]:
        """Return the lines of a text that are not older than those of earlier texts and were not shown yet.

        Lines within one text may be out of order, since stdout and stderr are two streams.
        """
        found: list[str] = []
        since, shown = self._last, self._shown
        for line in text.splitlines():
            at, _, words = line.partition(" ")
            if at < since or line in shown:
                continue
            self._last = max(self._last, at)
            found.append(words)
            self._shown.add(line)
        self._shown = {each for each in self._shown if each.partition(" ")[0] >= self._last}
        return found


def first_pod(pods: list[KubeObject]) -> str | None:
    """Return the pod whose output is shown: the newest started pod with index 0."""
    started = [each for each in pods if each.get("status", {}).get("phase") in {"Running", "Succeeded", "Failed"}]
    of_first = [each for each in started if each["metadata"].get("annotations", {}).get(INDEX_ANNOTATION, "0") == "0"]
    newest = max(of_first, key=lambda each: each["metadata"].get("creationTimestamp", ""), default=None)
    return None if newest is None else newest["metadata"]["name"]


class _Output:
    """Output of the first pod of some jobs, which may be replaced by another one over time."""

    def __init__(self, cluster: TeamCluster, say: Callable[[str], None], write: Callable[[str], None]) -> None:
        self._cluster, self._say, self._write = cluster, say, write
        self._tail: LogTail | None = None
        self._reported = False

    def show(self, jobs: list[JobState]) -> None:
        """Write the new lines."""
        try:
            pod = first_pod(_pods(self._cluster, jobs[0]))
            if pod is not None and (self._tail is None or self._tail.pod != pod):
                self._tail, self._reported = LogTail(self._cluster, pod), False
            for line in self._tail.fresh() if self._tail else ():
                self._write(line)
        except (ApiException, ExplainedError) as error:
            if not self._reported:
                words = message_of(error) if isinstance(error, ApiException) else error.problem
                self._say(f"the output is not available: {words}")
            self._reported = True


def _pods(cluster: TeamCluster, job: JobState) -> list[KubeObject]:
    return pods_of(job.kind, job.name, job.uid, cluster.list(POD, f"{POD_LABELS[job.kind]}={job.name}"))


def follow(cluster: TeamCluster, work: str, say: Callable[[str], None], write: Callable[[str], None]) -> State:
    """Follow the jobs of a workload until all have ended, and return DONE if all succeeded, otherwise FAILED.

    Passes changes of state to `say` and lines of output to `write`. Nothing is changed, so that interrupting it does not affect the jobs.
    A busy or unreachable server is asked again for five minutes. Raises ExplainedError after them, and if the jobs may not be listed.
    """
    reported: dict[str, str] = {}
    output = _Output(cluster, say, write)
    silent_since: float | None = None
    while True:
        try:
            found = job_states(cluster, work)
        except (ApiException, ExplainedError) as error:
            refused = error if isinstance(error, ExplainedError) else explained(error, "the jobs cannot be listed")
            passing = isinstance(error, ExplainedError) or is_passing(error)
            if silent_since is None and passing:
                say(f"{refused.problem.rstrip('.')}; looking again")
            silent_since = silent_since or time.monotonic()
            if not passing or time.monotonic() - silent_since > _PATIENCE_SECONDS:
                raise refused from error
            time.sleep(_POLL_SECONDS)
            continue
        silent_since = None
        if not found:
            say(f"{work} is gone: it was stopped, or its retention time is over")
            return State.FAILED
        for each in found:
            if (words := described(each)) != reported.get(each.name):
                reported[each.name] = words
                say(words)
        output.show(found)
        if all(each.state in ENDED for each in found):
            return State.DONE if all(each.state is State.DONE for each in found) else State.FAILED
        time.sleep(_POLL_SECONDS)


def described(job: JobState) -> str:
    """Return a line about a job."""
    pods = f", {job.pods} of {job.of} pods" if job.state in {State.RUNNING, State.STARTING} and job.of > 1 else ""
    return f"{job.name} is {job.state}{pods}{f': {job.why}' if job.why else ''}"
