"""A test's platform of queues: settings become a plan, the plan becomes the program's objects, and those are applied to the lab.

Nodes are fake ones like those of the plan's pools, created at once: tests check the decisions of queues, not the creation of nodes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from admission_fixtures import DryRunCluster, wait_until
from queue_objects import admission_objects, class_job, pool_node, program_objects, renamed

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE, KARPENTER_POOL_LABEL
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, NODE, WORKLOAD, release, running_pods
from flexspot.policies.admission.guarantee import ENDING, LEAVING, NAME, OF_CLAIMS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Generator
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
"""A machine with four L4. Teams share its nodes only with `node_sharing`."""
ONE_L4 = "g6.4xlarge"
"""A machine with one L4."""
SHARED_NODE = {
    "name": "l4-spot",
    "machine": FOUR_L4,
    "node_sharing": True,
    "capacity_type": "spot",
    "max_nodes": 1,
    "serves": ["training", "interactive"],
}
"""A pool of one node of four GPUs, whose pods may be of several teams."""


@dataclass(frozen=True)
class QueuePlatform:
    """A platform deployed on the lab. Its settings have short names; `own(name)` is the unique name on the lab."""

    cluster: Cluster
    settings: dict[str, Any]
    plan: Plan
    objects: list[KubeObject]
    suffix: str

    def own(self, name: str) -> str:
        """Return the unique name of a pool, team or cohort."""
        return f"{name}-{self.suffix}"

    def submit(self, team: str, name: str, workload_class: str = "training", **how: Any) -> KubeObject:
        """Create a Job of the class; `how` are arguments of `job`."""
        return self.cluster.create(self.job(team, name, workload_class, **how))

    def job(self, team: str, name: str, workload_class: str = "training", **how: Any) -> KubeObject:
        """Return a Job of the class in the team's namespace; `how` are arguments of `class_job`."""
        return class_job(self.plan, workload_class, name, self.own(team), **how)

    def wait_for_running(self, team: str, *jobs: str) -> list[KubeObject]:
        """Return the team's running pods once those of exactly the named Jobs run."""

        def look(pods: list[KubeObject]) -> tuple[list[KubeObject]] | None:
            running = running_pods(pods)
            # In a tuple, because no pods at all is a result, too.
            return (running,) if {pod["metadata"]["labels"]["job-name"] for pod in running} == set(jobs) else None

        what = f"exactly {', '.join(jobs) or 'no Job'} of {team} to run"
        [running] = self.cluster.wait_for(POD, look, what, namespace=self.own(team))
        return running

    def workloads(self, team: str) -> dict[str, KubeObject]:
        """Return the Workloads of a team's Jobs, by name of the Job."""
        return by_job(self.cluster.list(WORKLOAD, self.own(team)))

    def wait_for_workload(self, team: str, job: str, look: Callable[[KubeObject], object], what: str) -> KubeObject:
        """Return the Workload of a Job as soon as `look` returns a true value for it."""

        def found(workloads: list[KubeObject]) -> KubeObject | None:
            workload = by_job(workloads).get(job)
            return workload if workload is not None and look(workload) else None

        return self.cluster.wait_for(WORKLOAD, found, f"Workload of {job}: {what}", namespace=self.own(team))

    def wait_for_refusal(self, team: str, job: str, words: str) -> str:
        """Return Kueue's message about a waiting Job, as soon as it contains `words`."""
        workload = self.wait_for_workload(team, job, lambda each: words in why_waiting(each), f"waits because of {words!r}")
        return why_waiting(workload)

    def wait_for_event(self, team: str, name: str, words: str) -> None:
        """Return once an event about the object `name` contains `words`.

        Kueue's recorder merges later events of a kind into the first one, whose text stays: a test can wait only for the first of a reason.
        """

        def happened(events: list[KubeObject]) -> bool:
            return any(event["involvedObject"]["name"] == name and words in event["message"] for event in events)

        self.cluster.wait_for("v1/Event", happened, f"an event about {name} that says {words!r}", namespace=self.own(team))

    def wait_for_flavors(self, team: str, job: str) -> set[str]:
        """Return the flavors with which a Job was admitted, as soon as it is."""
        workload = self.wait_for_workload(team, job, lambda each: condition(each, "Admitted"), "admitted")
        return {each["flavors"][GPU_RESOURCE] for each in workload["status"]["admission"]["podSetAssignments"]}

    def wait_for_completion(self, team: str, *jobs: str) -> None:
        """Return once the named Jobs are Complete. Raises AssertionError as soon as one of the team's has failed."""

        def look(found: list[KubeObject]) -> bool:
            failed = [job["metadata"]["name"] for job in found if condition(job, "Failed")]
            assert not failed, f"Job(s) failed that should have survived: {', '.join(failed)}"
            return set(jobs) <= {job["metadata"]["name"] for job in found if condition(job, "Complete")}

        self.cluster.wait_for(JOB, look, f"completion of {', '.join(jobs)}", namespace=self.own(team))

    def finish(self, team: str, *jobs: str) -> None:
        """Let the team's running pods finish their work. Return once the named Jobs are Complete."""
        release(self.cluster, self.own(team))
        self.wait_for_completion(team, *jobs)

    def add_nodes(self, pool: str, count: int) -> None:
        """Create fake nodes of a pool."""
        plan = next(each for each in self.plan.pools if each.name == self.own(pool))
        for _ in range(count):
            self.cluster.create(pool_node(self.plan, plan, f"node-{self.suffix}"))

    def redeploy(self, register: Register, **changes: Any) -> None:
        """Apply the queues again with changed settings. Objects that the new settings name differently stay as they were."""
        changed = program_objects(_plan({**self.settings, **changes}, self.suffix), register)
        self.cluster.apply(*(each for each in changed if each["kind"] == "ClusterQueue"))


def unchanged(_each: KubeObject) -> None:
    """Leave an object as the program declares it."""


@contextmanager
def queues_of(
    cluster: Cluster,
    register: Register,
    nodes: dict[str, int],
    adapt: Callable[[KubeObject], None] = unchanged,
    /,
    *,
    without: Container[str] = (),
    **settings: Any,
) -> Generator[QueuePlatform]:
    """Yield a platform of `settings`, with this many fake nodes of its pools, on the lab.

    adapt: changes an object in place where a test cannot wait for the shipped values.
    without: names of policies of the guarantee that the platform does not have. Default: it has all of them, as on a cluster.

    The other admission policies are missing: a cluster has one set of them.
    """
    suffix = uuid4().hex[:6]
    settings = {"cloud": "local", "environment": "test", "owner": "ann", "cohort": "acme", **settings}
    plan = _plan(settings, suffix)
    platform = QueuePlatform(cluster, settings, plan, program_objects(plan, register), suffix)
    for each in platform.objects:
        adapt(each)
    guards = _guards(platform, register, without)
    try:
        cluster.apply(*platform.objects, *guards)
        for pool, count in nodes.items():
            platform.add_nodes(pool, count)
        _wait_until_ready(platform)
        if NAME not in without:
            _wait_until_guarded(platform)
        yield platform
    finally:
        _clean_up(platform)
        for each in reversed(guards):
            cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])


def two_teams(cluster: Cluster, register: Register, **how: Any) -> AbstractContextManager[QueuePlatform]:
    """Return a node of four GPUs, two for each team, for training and notebooks. `how` are arguments of `queues_of`."""
    teams = [{"name": name, "shares": {"l4-spot": 2}} for name in ("alpha", "beta")]
    return queues_of(cluster, register, {"l4-spot": 1}, pools=[SHARED_NODE], teams=teams, **how)


def pools_of(cluster: Cluster, pods: list[KubeObject]) -> set[str | None]:
    """Return the pools on whose nodes the pods are."""
    pools = {node["metadata"]["name"]: node["metadata"]["labels"].get(KARPENTER_POOL_LABEL) for node in cluster.list(NODE)}
    return {pools[pod["spec"]["nodeName"]] for pod in pods}


GUARDS = (NAME, LEAVING, OF_CLAIMS, ENDING)
"""The policies of the guarantee. A test that deploys all policies of a stack leaves these out."""


def _guards(platform: QueuePlatform, register: Register, without: Container[str]) -> list[KubeObject]:
    """Return the guarantee's policies under unique names, for the platform's own namespaces: others on the lab do not have them."""
    kept = {name for name in GUARDS if name not in without}
    declared = admission_objects(platform.plan, register)
    found = [each for each in declared if not kept.isdisjoint((each["metadata"]["name"], each["spec"].get("policyName")))]
    # The API server learns of policies in the order of their creation.
    found.sort(key=lambda each: NAME in (each["metadata"]["name"], each["spec"].get("policyName")))
    own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [team.namespace for team in platform.plan.teams]}
    for each in found:
        each["metadata"]["name"] = platform.own(each["metadata"]["name"])
        if "policyName" in each["spec"]:
            named = platform.own(each["spec"]["policyName"])
            each["spec"] |= {"policyName": named, "matchResources": {"namespaceSelector": {"matchExpressions": [own]}}}
    assert len(found) == 2 * len(kept)
    return found


def _wait_until_guarded(platform: QueuePlatform) -> None:
    """Return once the policy NAME, which is the last of `_guards`, applies in every team's namespace."""
    server = DryRunCluster(platform.cluster.kubeconfig)
    queued = next(each.workload_class for each in platform.plan.routes if each.queued)
    placed = [class_job(platform.plan, queued, "placed", team.namespace) for team in platform.plan.teams]
    for each in placed:
        each["spec"]["template"]["spec"]["nodeName"] = "by-hand"
    policy = platform.own(NAME)
    wait_until(lambda: all(policy in server.ask(each).refusal for each in placed), f"{policy} is not applied")


def by_job(workloads: list[KubeObject]) -> dict[str, KubeObject]:
    """Return Workloads by the name of their Job."""
    return {owner["name"]: each for each in workloads for owner in each["metadata"].get("ownerReferences", []) if owner["kind"] == "Job"}


def condition_of(each: KubeObject, name: str) -> KubeObject | None:
    """Return the condition `name` of an object's status, whatever its status."""
    status: KubeObject = each.get("status", {})
    conditions: list[KubeObject] = status.get("conditions") or []
    return next((found for found in conditions if found["type"] == name), None)


def why_waiting(workload: KubeObject) -> str:
    """Return Kueue's message about a Workload without quota. Empty for one with quota, or one that Kueue has not seen."""
    found = condition_of(workload, "QuotaReserved")
    return str(found["message"]) if found is not None and found["status"] == "False" else ""


def _plan(settings: dict[str, Any], suffix: str) -> Plan:
    return build_plan(parse_settings(renamed(settings, suffix), "settings"))


def _wait_until_ready(platform: QueuePlatform) -> None:
    """Return once the queues admit Jobs and every team's namespace accepts pods."""
    queues = {each.cluster_queue for each in platform.plan.queues}

    def active(found: list[KubeObject]) -> bool:
        return queues <= {each["metadata"]["name"] for each in found if condition(each, "Active")}

    def has_default(found: list[KubeObject]) -> bool:
        return any(each["metadata"]["name"] == "default" for each in found)

    platform.cluster.wait_for(CLUSTER_QUEUE, active, "the ClusterQueues to be active")
    for team in platform.plan.teams:
        platform.cluster.wait_for("v1/ServiceAccount", has_default, "the default service account", namespace=team.namespace)


def _clean_up(platform: QueuePlatform) -> None:
    """Remove everything. Return once the objects outside the test's own namespaces are gone."""
    cluster = platform.cluster
    for team in platform.plan.teams:
        for job in cluster.list(JOB, team.namespace):
            cluster.delete(JOB, job["metadata"]["name"], team.namespace)
    # Topologies first. Kueue 0.19 processes a deleted topology only once, and ignores it if it still knows a flavor that is just being
    # deleted.
    topologies = [each for each in platform.objects if each["kind"] == "Topology"]
    for each in (*topologies, *reversed(platform.objects)):
        cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"], each["metadata"].get("namespace"))
    for node in cluster.list(NODE):
        if node["metadata"]["name"].startswith(f"node-{platform.suffix}-"):
            cluster.delete(NODE, node["metadata"]["name"])
    for kind in (CLUSTER_QUEUE, RESOURCE_FLAVOR, ADMISSION_CHECK, TOPOLOGY):
        names = {each["metadata"]["name"] for each in platform.objects if f"{each['apiVersion']}/{each['kind']}" == kind}

        def gone(found: list[KubeObject], names: set[str] = names) -> bool:
            return not names & {each["metadata"]["name"] for each in found}

        cluster.wait_for(kind, gone, f"the deletion of {', '.join(sorted(names))}")
