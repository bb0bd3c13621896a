"""A platform of queues of a test's own: settings become a plan, the plan the program's objects, those are applied to the lab.

Nodes are fake ones as the plan's pools would have them, made at once: what the queues decide is looked at, not who makes nodes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from queue_objects import admission_objects, class_job, pool_node, program_objects, renamed

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE, KARPENTER_POOL_LABEL
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, NODE, WORKLOAD, release, running_pods
from flexspot.policies.admission.guarantee import ENDING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from queue_objects import Register

    from flexspot.capacity.plan.model import Plan
    from flexspot.lab.cluster import Cluster, KubeObject

CLUSTER_QUEUE = "kueue.x-k8s.io/v1beta2/ClusterQueue"
RESOURCE_FLAVOR = "kueue.x-k8s.io/v1beta2/ResourceFlavor"
ADMISSION_CHECK = "kueue.x-k8s.io/v1beta2/AdmissionCheck"
TOPOLOGY = "kueue.x-k8s.io/v1beta2/Topology"

GKE: dict[str, Any] = {"cloud": "gke", "project": "acme-ai-test", "region": "us-central1", "zones": ["us-central1-a"]}
"""Settings of a platform on Google Cloud."""

FOUR_L4 = "g6.12xlarge"
"""A machine with four L4."""


@dataclass(frozen=True)
class QueueGround:
    """A platform that is deployed on the lab. Names in its settings are short ones; `own(name)` is what the lab knows them by."""

    cluster: Cluster
    settings: dict[str, Any]
    plan: Plan
    objects: list[KubeObject]
    suffix: str

    def own(self, name: str) -> str:
        """The unique name of a pool, team or cohort."""
        return f"{name}-{self.suffix}"

    def submit(self, team: str, name: str, workload_class: str = "training", **how: Any) -> KubeObject:
        """Creates a Job of the class; `how` is what `job` takes."""
        return self.cluster.create(self.job(team, name, workload_class, **how))

    def job(self, team: str, name: str, workload_class: str = "training", **how: Any) -> KubeObject:
        """A Job of the class in the team's namespace; `how` is what `class_job` takes."""
        return class_job(self.plan, workload_class, name, self.own(team), **how)

    def wait_for_running(self, team: str, *jobs: str) -> list[KubeObject]:
        """Returns the team's running pods once those of exactly the named Jobs run."""

        def look(pods: list[KubeObject]) -> tuple[list[KubeObject]] | None:
            running = running_pods(pods)
            # In a tuple, because no pods at all are seen too.
            return (running,) if {pod["metadata"]["labels"]["job-name"] for pod in running} == set(jobs) else None

        what = f"exactly {', '.join(jobs) or 'no Job'} of {team} to run"
        [running] = self.cluster.wait_for(POD, look, what, namespace=self.own(team))
        return running

    def workloads(self, team: str) -> dict[str, KubeObject]:
        """The Workloads of a team's Jobs, by name of the Job."""
        return by_job(self.cluster.list(WORKLOAD, self.own(team)))

    def wait_for_workload(self, team: str, job: str, look: Callable[[KubeObject], object], what: str) -> KubeObject:
        """The Workload of a Job as soon as `look` sees something in it."""

        def found(workloads: list[KubeObject]) -> KubeObject | None:
            workload = by_job(workloads).get(job)
            return workload if workload is not None and look(workload) else None

        return self.cluster.wait_for(WORKLOAD, found, f"Workload of {job}: {what}", namespace=self.own(team))

    def wait_for_refusal(self, team: str, job: str, words: str) -> str:
        """What Kueue says of a Job that it keeps waiting, as soon as that holds `words`."""
        workload = self.wait_for_workload(team, job, lambda each: words in why_waiting(each), f"waits because of {words!r}")
        return why_waiting(workload)

    def wait_for_event(self, team: str, name: str, words: str) -> None:
        """Returns once an event about the object `name` holds `words`.

        Kueue's recorder folds later events of a kind into the first one, whose text stays: only the first of a reason can be waited for.
        """

        def told(events: list[KubeObject]) -> bool:
            return any(event["involvedObject"]["name"] == name and words in event["message"] for event in events)

        self.cluster.wait_for("v1/Event", told, f"an event about {name} that says {words!r}", namespace=self.own(team))

    def wait_for_flavors(self, team: str, job: str) -> set[str]:
        """The flavors under which a Job was admitted, as soon as it is."""
        workload = self.wait_for_workload(team, job, lambda each: condition(each, "Admitted"), "admitted")
        return {each["flavors"][GPU_RESOURCE] for each in workload["status"]["admission"]["podSetAssignments"]}

    def wait_for_completion(self, team: str, *jobs: str) -> None:
        """Returns once the named Jobs are Complete. Raises AssertionError as soon as one of the team's has failed."""

        def look(found: list[KubeObject]) -> bool:
            failed = [job["metadata"]["name"] for job in found if condition(job, "Failed")]
            assert not failed, f"Job(s) failed that should have survived: {', '.join(failed)}"
            return set(jobs) <= {job["metadata"]["name"] for job in found if condition(job, "Complete")}

        self.cluster.wait_for(JOB, look, f"completion of {', '.join(jobs)}", namespace=self.own(team))

    def finish(self, team: str, *jobs: str) -> None:
        """Lets the team's running pods finish their work, and returns once the named Jobs are Complete."""
        release(self.cluster, self.own(team))
        self.wait_for_completion(team, *jobs)

    def add_nodes(self, pool: str, count: int) -> None:
        """Makes fake nodes of a pool."""
        plan = next(each for each in self.plan.pools if each.name == self.own(pool))
        for _ in range(count):
            self.cluster.create(pool_node(plan, f"node-{self.suffix}"))

    def redeploy(self, register: Register, **changes: Any) -> None:
        """Applies the queues anew as other settings have them; what the settings call differently stays as it was."""
        changed = program_objects(_plan({**self.settings, **changes}, self.suffix), register)
        self.cluster.apply(*(each for each in changed if each["kind"] == "ClusterQueue"))


def unchanged(_each: KubeObject) -> None:
    """An object as the program declares it."""


@contextmanager
def queues_of(
    cluster: Cluster,
    register: Register,
    nodes: dict[str, int],
    adapt: Callable[[KubeObject], None] = unchanged,
    /,
    *,
    endings_kept: bool = True,
    **settings: Any,
) -> Generator[QueueGround]:
    """A platform of `settings`, with so many fake nodes of its pools, on the lab for as long as the context lasts.

    `adapt` changes an object in place where a test cannot wait for what is shipped. `endings_kept` says whether the platform has its policy
    flexspot-guarantee-ending: without it a Job that Kueue preempts in the second in which it ends keeps its GPUs for ever. The other
    admission policies are not there: a cluster has one set of them.
    """
    suffix = uuid4().hex[:6]
    settings = {"cloud": "local", "environment": "test", "owner": "ann", "cohort": "acme", **settings}
    plan = _plan(settings, suffix)
    ground = QueueGround(cluster, settings, plan, program_objects(plan, register), suffix)
    for each in ground.objects:
        adapt(each)
    endings = _policy_of_endings(ground, register) if endings_kept else []
    try:
        cluster.apply(*ground.objects, *endings)
        for pool, count in nodes.items():
            ground.add_nodes(pool, count)
        _wait_until_ready(ground)
        yield ground
    finally:
        _clean_up(ground)
        for each in reversed(endings):
            cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])


def two_teams(cluster: Cluster, register: Register) -> AbstractContextManager[QueueGround]:
    """A node of four GPUs, two of each team, for training and notebooks."""
    pool = {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": 1, "serves": ["training", "interactive"]}
    teams = [{"name": name, "shares": {"l4-spot": 2}} for name in ("alpha", "beta")]
    return queues_of(cluster, register, {"l4-spot": 1}, pools=[pool], teams=teams)


def pools_of(cluster: Cluster, pods: list[KubeObject]) -> set[str | None]:
    """The pools on whose nodes the pods are."""
    pools = {node["metadata"]["name"]: node["metadata"]["labels"].get(KARPENTER_POOL_LABEL) for node in cluster.list(NODE)}
    return {pools[pod["spec"]["nodeName"]] for pod in pods}


def _policy_of_endings(ground: QueueGround, register: Register) -> list[KubeObject]:
    """The policy under a name of the ground's own, for its own namespaces: others on the lab are without it."""
    declared = admission_objects(ground.plan, register)
    found = [each for each in declared if ENDING in (each["metadata"]["name"], each["spec"].get("policyName"))]
    own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [team.namespace for team in ground.plan.teams]}
    for each in found:
        each["metadata"]["name"] = ground.own(each["metadata"]["name"])
        if "policyName" in each["spec"]:
            each["spec"] |= {"policyName": ground.own(ENDING), "matchResources": {"namespaceSelector": {"matchExpressions": [own]}}}
    assert [each["kind"] for each in found] == ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    return found


def by_job(workloads: list[KubeObject]) -> dict[str, KubeObject]:
    """Workloads by the name of the Job that each stands for."""
    return {owner["name"]: each for each in workloads for owner in each["metadata"].get("ownerReferences", []) if owner["kind"] == "Job"}


def condition_of(each: KubeObject, name: str) -> KubeObject | None:
    """The condition `name` of an object's status, whatever its status."""
    status: KubeObject = each.get("status", {})
    conditions: list[KubeObject] = status.get("conditions") or []
    return next((found for found in conditions if found["type"] == name), None)


def why_waiting(workload: KubeObject) -> str:
    """What Kueue says of a Workload that has no quota; empty for one that has, or that Kueue has not looked at."""
    found = condition_of(workload, "QuotaReserved")
    return str(found["message"]) if found is not None and found["status"] == "False" else ""


def _plan(settings: dict[str, Any], suffix: str) -> Plan:
    return build_plan(parse_settings(renamed(settings, suffix), "settings"))


def _wait_until_ready(ground: QueueGround) -> None:
    """Returns once the queues take Jobs and every team's namespace takes pods."""
    queues = {each.cluster_queue for each in ground.plan.queues}

    def active(found: list[KubeObject]) -> bool:
        return queues <= {each["metadata"]["name"] for each in found if condition(each, "Active")}

    def has_default(found: list[KubeObject]) -> bool:
        return any(each["metadata"]["name"] == "default" for each in found)

    ground.cluster.wait_for(CLUSTER_QUEUE, active, "the ClusterQueues to be active")
    for team in ground.plan.teams:
        ground.cluster.wait_for("v1/ServiceAccount", has_default, "the default service account", namespace=team.namespace)


def _clean_up(ground: QueueGround) -> None:
    """Removes everything, and returns once what is not in a namespace of the test's own is gone."""
    cluster = ground.cluster
    for team in ground.plan.teams:
        for job in cluster.list(JOB, team.namespace):
            cluster.delete(JOB, job["metadata"]["name"], team.namespace)
    # Topologies first: Kueue 0.19 looks at one that is deleted just as its flavor goes while it still knows the flavor, and never again.
    topologies = [each for each in ground.objects if each["kind"] == "Topology"]
    for each in (*topologies, *reversed(ground.objects)):
        cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"], each["metadata"].get("namespace"))
    for node in cluster.list(NODE):
        if node["metadata"]["name"].startswith(f"node-{ground.suffix}-"):
            cluster.delete(NODE, node["metadata"]["name"])
    for kind in (CLUSTER_QUEUE, RESOURCE_FLAVOR, ADMISSION_CHECK, TOPOLOGY):
        names = {each["metadata"]["name"] for each in ground.objects if f"{each['apiVersion']}/{each['kind']}" == kind}

        def gone(found: list[KubeObject], names: set[str] = names) -> bool:
            return not names & {each["metadata"]["name"] for each in found}

        cluster.wait_for(kind, gone, f"the deletion of {', '.join(sorted(names))}")
