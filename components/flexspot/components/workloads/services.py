"""Workloads as components: jobs, notebooks, model servers, the cache of their weights, and workers of a queue."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import Any, NotRequired, TypedDict

import pulumi

from flexspot.capacity.workloads.jobs import CHECKPOINTED_JOB, FLEX_START_JOB, QUEUED_JOB, checkpointed_job, flex_start_job, queued_job
from flexspot.capacity.workloads.models import MODEL_CACHE, MODEL_SERVER, ModelCacheRequest, model_cache, model_server
from flexspot.capacity.workloads.notebook import NOTEBOOK, notebook
from flexspot.capacity.workloads.requests import JobRequest, ModelServerRequest, NotebookRequest, QueueWorkersRequest
from flexspot.capacity.workloads.workers import QUEUE_WORKERS, queue_workers
from flexspot.components.shared_args import publish
from flexspot.components.workloads.workload_args import WorkloadArgs, declare_objects, declare_service_objects, plan_of, request_of


class JobArgs(WorkloadArgs):
    """Arguments of CheckpointedJob, QueuedJob and FlexStartJob."""

    pods: NotRequired[int | None]
    """Number of pods that do the work, each with its GPUs, 1 to 2000. Default: 1."""

    at_once: NotRequired[int | None]
    """Number of independent pods that run at a time, as one Job. Default: each pod is a Job, and the queue decides how many run."""

    run_seconds: NotRequired[int | None]
    """Seconds after admission at which the job is ended, at least 60. Default, and maximum: the class's limit."""

    retries: NotRequired[int | None]
    """Number of pod failures that the job survives, 1 to 100. Interruptions do not count. Default: 3."""

    fatal_exit_codes: NotRequired[list[int] | None]
    """Exit codes of the program after which a retry is useless, never 143. Default: none."""

    keep_seconds: NotRequired[int | None]
    """Seconds that the job and its pods' logs are kept after its end. Default: 259200, three days."""

    jobset: NotRequired[bool | None]
    """If true, pods that train together are a JobSet. The cluster must have its controller. Default: false, a Job and a Service."""

    port: NotRequired[int | None]
    """Port on which pod 0 waits for the others. Default: 29500."""

    launcher: NotRequired[str | None]
    """Launcher that starts `command` on all GPUs: `ranks`, `torchrun`, `jax` or `ray`. Default: the container only runs the command."""


class CheckpointedJob(pulumi.ComponentResource):
    """One pod, or several that train together and start all at once or not at all.

    Reclaimed nodes, drains and preemption use no retries. Failures of the program do. The job waits in the team's queue, runs on any
    capacity of its class with enough room, and has the team's checkpoints at CHECKPOINT_DIR. An interrupted program must exit with 143.

    Raises WorkloadError, before anything is registered, for a class that keeps no checkpoints, a pool in which the team has no share, and
    work that would wait forever.
    """

    namespace: pulumi.Output[str]
    """The namespace of the team and the job."""

    job: pulumi.Output[str]
    """The name of the Job or JobSet, known once it exists."""

    def __init__(self, name: str, args: JobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = checkpointed_job(plan_of(args), request_of(CHECKPOINTED_JOB, JobRequest, args))
        super().__init__("flexspot:index:CheckpointedJob", name, {**args}, opts)
        *_, declared = declare_objects(name, self, objects)
        self.namespace = pulumi.Output.from_input(str(objects[-1]["metadata"]["namespace"]))
        self.job = declared.urn.apply(lambda _: str(objects[-1]["metadata"]["name"]))
        publish(self)


class FlexStartJob(pulumi.ComponentResource):
    """A job on capacity that is not reclaimed before the job's time is over, for at most seven days. Only on GKE.

    One pod gets a flex-start node. Several pods train together and get all their nodes at once, through a ProvisioningRequest from Kueue.

    Raises WorkloadError, before anything is registered, for a class without such capacity, and for the same problems as CheckpointedJob.
    """

    namespace: pulumi.Output[str]
    """The namespace of the team and the job."""

    job: pulumi.Output[str]
    """The name of the Job or JobSet, known once it exists."""

    def __init__(self, name: str, args: JobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = flex_start_job(plan_of(args), request_of(FLEX_START_JOB, JobRequest, args))
        super().__init__("flexspot:index:FlexStartJob", name, {**args}, opts)
        *_, declared = declare_objects(name, self, objects)
        self.namespace = pulumi.Output.from_input(str(objects[-1]["metadata"]["namespace"]))
        self.job = declared.urn.apply(lambda _: str(objects[-1]["metadata"]["name"]))
        publish(self)


class QueuedJob(pulumi.ComponentResource):
    """One pod, or several that share the work by JOB_COMPLETION_INDEX. Each is a separate Job with its own queueing and retries.

    With `at_once` they are one Job, which Kueue starts, and gives up on, as a whole.

    It survives interruptions like CheckpointedJob. Without checkpoints an interrupted pod starts its part again.

    Raises WorkloadError, before anything is registered, for a pool in which the team has no share, and work that would wait forever.
    """

    namespace: pulumi.Output[str]
    """The namespace of the team and the job."""

    job: pulumi.Output[str]
    """The name of the Job, or of the first of several, known once it exists."""

    jobs: pulumi.Output[list[str]]
    """The names of all of its Jobs, by index, known once they exist."""

    def __init__(self, name: str, args: JobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = queued_job(plan_of(args), request_of(QUEUED_JOB, JobRequest, args))
        super().__init__("flexspot:index:QueuedJob", name, {**args}, opts)
        first, *_ = declared = declare_objects(name, self, objects)
        names = [str(each["metadata"]["name"]) for each in objects]
        self.namespace = pulumi.Output.from_input(str(objects[0]["metadata"]["namespace"]))
        self.job = first.urn.apply(lambda _: names[0])
        self.jobs = pulumi.Output.all(*(each.urn for each in declared)).apply(lambda _: names)
        publish(self)


class NotebookArgs(WorkloadArgs):
    """Arguments of Notebook. Its image has Jupyter's server and Python 3."""

    idle_seconds: NotRequired[int | None]
    """Seconds without kernel or terminal activity after which it ends, 300 to 86400. Default: 3600."""

    nightly_stop: NotRequired[str | None]
    """Time in UTC at which it ends every night. Default: 20:00."""

    home: NotRequired[str | None]
    """Mount path of its disk. Default: /home/jovyan."""

    home_gib: NotRequired[int | None]
    """Size of the disk, in GiB. Default: 50."""

    storage_class: NotRequired[str | None]
    """Storage class of the disk. Default: the cluster's default one."""

    token_secret: NotRequired[str | None]
    """Secret whose key token is the browser's access token. It must exist. Default: the name and -token."""


class Notebook(pulumi.ComponentResource):
    """A persistent disk, and the object that starts a Jupyter server on it on demand.

    A class with a queue has sessions: `kubectl create job NAME --from=cronjob/NAME` starts one. A class without a queue has a Deployment,
    which `kubectl scale` starts. Either ends when no kernel or terminal has been active for `idle_seconds`, at the class's run limit, and
    at night. The team's submitters may start it and reach it by port-forward. It has no other access.

    Raises WorkloadError, before anything is registered, for work that fits no capacity.
    """

    namespace: pulumi.Output[str]
    """The team's namespace."""

    start: pulumi.Output[str]
    """The command that starts it, known once all its objects exist."""

    def __init__(self, name: str, args: NotebookArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = notebook(plan_of(args), request_of(NOTEBOOK, NotebookRequest, args))
        super().__init__("flexspot:index:Notebook", name, {**args}, opts)
        *_, last = declare_service_objects(name, self, objects, wakes=True)
        made, own = str(objects[-1]["metadata"]["namespace"]), str(objects[-1]["metadata"]["name"])
        session = objects[-1]["kind"] == "CronJob"
        start = f"create job {own} --from=cronjob/{own}" if session else f"scale deployment {own} --replicas=1"
        self.namespace = pulumi.Output.from_input(made)
        self.start = last.urn.apply(lambda _: f"kubectl -n {made} {start}")
        publish(self)


class ModelCacheArgs(TypedDict):
    """Arguments of ModelCache."""

    platform: dict[str, Any]
    """The settings of the stack whose cluster it uses: the contents of `flexspot:platform` in the stack file."""

    name: str
    """Name of the claim."""

    team: str
    """The team whose namespace contains the claim."""

    bucket: str
    """The bucket's name, without gs:// or s3://."""

    bucket_region: NotRequired[str | None]
    """The bucket's region. Any other than the cluster's is rejected. Default: not checked."""

    folder: NotRequired[str | None]
    """The folder to mount, without leading or trailing slash. Default: shared/models."""

    cache_gib: NotRequired[int | None]
    """Data that a node caches, in GiB. 0 for no cache. Default: 100."""

    run_as_user: NotRequired[int | None]
    """User and group id that own the files, at least 1. Default: 1000."""


class ModelCache(pulumi.ComponentResource):
    """A folder of a bucket in the cluster's region that any pods of a team can read at once, cached on the nodes' disks.

    ModelServer mounts it by `model_cache`. The team's identity must be allowed to read the folder: that of S3TeamAccess and GcsTeamAccess
    reads `shared` of the dataset bucket. It has not been mounted in a live cluster.

    Raises WorkloadError, before anything is registered, for a bucket in another region and a platform without buckets.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name."""

    def __init__(self, name: str, args: ModelCacheArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = model_cache(plan_of(args), request_of(MODEL_CACHE, ModelCacheRequest, args))
        super().__init__("flexspot:index:ModelCache", name, {**args}, opts)
        _, declared = declare_service_objects(name, self, objects)
        self.claim = declared.urn.apply(lambda _: str(objects[1]["metadata"]["name"]))
        self.volume = pulumi.Output.from_input(str(objects[0]["metadata"]["name"]))
        publish(self)


class ModelServerArgs(WorkloadArgs):
    """Arguments of ModelServer."""

    replicas: NotRequired[int | None]
    """Minimum replicas, 1 to 1000. Default: 2."""

    max_replicas: NotRequired[int | None]
    """Maximum replicas for autoscaling. Default: `replicas`, without an autoscaler."""

    cpu_percent: NotRequired[int | None]
    """Target CPU utilisation of the autoscaler, in percent of the CPU request, 1 to 100. Default: 70."""

    metric: NotRequired[str | None]
    """A pod metric to scale by instead, served by an adapter in the cluster. Default: the cpu."""

    metric_target: NotRequired[str | None]
    """Target average of `metric` per pod, such as 5. Required with `metric`. Default: none."""

    port: NotRequired[int | None]
    """HTTP port, 1024 to 65535. Default: 8000."""

    ready_path: NotRequired[str | None]
    """Path that answers 200 once the model is loaded. Default: /health."""

    live_path: NotRequired[str | None]
    """Path that answers 200 while the process is healthy. Default: `ready_path`."""

    start_seconds: NotRequired[int | None]
    """Maximum seconds for loading the model, 10 to 7200. Default: 900."""

    drain_seconds: NotRequired[int | None]
    """Seconds that a terminating pod continues to serve, within its grace period. Default: 10."""

    callers: NotRequired[list[str] | None]
    """Namespaces that may call it, in addition to the team's own. Default: none."""

    model_cache: NotRequired[str | None]
    """Claim of a ModelCache of the team. Default: none."""

    model_cache_gib: NotRequired[int | None]
    """The `cache_gib` of that ModelCache. On GKE a pod needs this space on its node. Default: 0."""

    model_path: NotRequired[str | None]
    """Mount path of the cache. Default: /models."""


class ModelServer(pulumi.ComponentResource):
    """Replicas behind a Service of the cluster, on reserved nodes first if the class has them.

    Rolling updates replace them one by one without a spare GPU. They drain before they end, spread over zones and nodes, and are evicted
    one at a time. The class must not wait in a queue. Nothing is reachable from outside: put your own gateway in front and name its
    namespace in `callers`.

    Raises WorkloadError, before anything is registered, for a class that waits in a queue, more replicas than the team may run without one,
    and work that fits no capacity.
    """

    namespace: pulumi.Output[str]
    """The team's namespace."""

    address: pulumi.Output[str]
    """Address of the server inside the cluster, such as http://ranker.search.svc, known once its Service exists."""

    def __init__(self, name: str, args: ModelServerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = model_server(plan_of(args), request_of(MODEL_SERVER, ModelServerRequest, args))
        super().__init__("flexspot:index:ModelServer", name, {**args}, opts)
        service, *_ = declare_service_objects(name, self, objects)
        namespace = str(objects[0]["metadata"]["namespace"])
        self.namespace = pulumi.Output.from_input(namespace)
        self.address = service.urn.apply(lambda _: f"http://{objects[0]['metadata']['name']}.{namespace}.svc")
        publish(self)


class QueueWorkersArgs(WorkloadArgs):
    """Arguments of QueueWorkers."""

    queue: str
    """The queue: a Pub/Sub subscription on GKE, an SQS queue URL on EKS, as in the stack's outputs."""

    workers: NotRequired[int | None]
    """Maximum workers that run at once, 1 to 1000. Default: 1, or with `keda` as many as the team's GPUs allow."""

    keda: NotRequired[bool | None]
    """If true, KEDA starts workers when there is work. The cluster must have its operator. Default: false."""

    items_per_worker: NotRequired[int | None]
    """Items in the queue per worker that KEDA starts. Default: 20."""

    lease_seconds: NotRequired[int | None]
    """Seconds that a worker leases an item, at least 30 more than its grace period. Default: 300."""

    run_seconds: NotRequired[int | None]
    """Seconds after which a worker in a Kueue queue ends. Default: the class's limit."""


class QueueWorkers(pulumi.ComponentResource):
    """Workers on capacity that may be reclaimed at any time, because the queue remembers the remaining work.

    They find the queue in FLEXSPOT_WORK_QUEUE and their lease in FLEXSPOT_LEASE_SECONDS. In a class with a Kueue queue they are Jobs, in a
    class without one a Deployment. With `keda` there are none while the queue of items is empty. KEDA's objects follow its documentation
    and have not been tested with its operator.

    Raises WorkloadError, before anything is registered, for a queue that the platform's workers cannot pull from, a lease that an
    interrupted worker would outlive, and more workers than the team has GPUs for.
    """

    namespace: pulumi.Output[str]
    """The team's namespace."""

    workload: pulumi.Output[str]
    """Kind and name of the object that creates the workers, such as ScaledJob/score, or of the last Job. Known once all exist."""

    def __init__(self, name: str, args: QueueWorkersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = queue_workers(plan_of(args), request_of(QUEUE_WORKERS, QueueWorkersRequest, args))
        super().__init__("flexspot:index:QueueWorkers", name, {**args}, opts)
        *_, last = declare_service_objects(name, self, objects)
        made = f"{objects[-1]['kind']}/{objects[-1]['metadata']['name']}"
        self.namespace = pulumi.Output.from_input(str(objects[-1]["metadata"]["namespace"]))
        self.workload = last.urn.apply(lambda _: made)
        publish(self)
