"""A model that answers requests."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired

import pulumi

from capacity.workloads.model_server import MODEL_SERVER, model_server
from capacity.workloads.requests import ModelServerRequest
from components.workloads.declared_objects import declare_service_objects
from components.workloads.workload_args import WorkloadArgs, plan_of, request_of


class ModelServerArgs(WorkloadArgs):
    """Arguments of ModelServer."""

    replicas: NotRequired[int | None]
    """Replicas that are always there, 1 to 1000. Default: 2."""

    max_replicas: NotRequired[int | None]
    """The most that an autoscaler may make of them. Default: `replicas`, without an autoscaler."""

    cpu_percent: NotRequired[int | None]
    """Of the cpu that a pod asks for, the share at which there should be more, 1 to 100. Default: 70."""

    metric: NotRequired[str | None]
    """A metric of the pods to scale by instead, which an adapter in the cluster serves. Default: the cpu."""

    metric_target: NotRequired[str | None]
    """The average of `metric` that a pod can bear, such as 5. Default: none; it comes with `metric`."""

    port: NotRequired[int | None]
    """The port that speaks HTTP, 1024 to 65535. Default: 8000."""

    ready_path: NotRequired[str | None]
    """The path that answers 200 once the model is loaded. Default: /health."""

    live_path: NotRequired[str | None]
    """The path that answers 200 as long as the process is well. Default: `ready_path`."""

    start_seconds: NotRequired[int | None]
    """The longest that loading may take, 10 to 7200. Default: 900."""

    drain_seconds: NotRequired[int | None]
    """How long an ending pod serves on, inside its grace period. Default: 10."""

    callers: NotRequired[list[str] | None]
    """Namespaces that may call it beside the team's own. Default: none."""

    model_cache: NotRequired[str | None]
    """The claim of a ModelCache of the team. Default: none."""

    model_cache_gib: NotRequired[int | None]
    """The `cache_gib` of that ModelCache, for which a pod on GKE needs room on its node. Default: 0."""

    model_path: NotRequired[str | None]
    """Where the cache is mounted. Default: /models."""


class ModelServer(pulumi.ComponentResource):
    """Replicas behind a Service of the cluster, on reserved nodes first where the class has them.

    They roll one by one without a spare GPU, drain before they end, spread over zones and nodes, and are evicted one at a time. Its class
    waits in no queue. Nothing is open to the outside: put a gateway of one's own before it and name its namespace in `callers`.

    Raises WorkloadError, before anything is registered, for a class that waits in a queue, more replicas than the team may run without
    one, and what has no place.
    """

    namespace: pulumi.Output[str]
    """The team's namespace."""

    address: pulumi.Output[str]
    """Where the server answers inside the cluster, such as http://ranker.search.svc; known once its Service exists."""

    def __init__(self, name: str, args: ModelServerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = model_server(plan_of(args), request_of(MODEL_SERVER, ModelServerRequest, args))
        super().__init__("flexspot:index:ModelServer", name, {**args}, opts)
        service, *_ = declare_service_objects(name, self, objects)
        namespace = str(objects[0]["metadata"]["namespace"])
        self.namespace = pulumi.Output.from_input(namespace)
        self.address = service.urn.apply(lambda _: f"http://{objects[0]['metadata']['name']}.{namespace}.svc")
        self.register_outputs({"namespace": self.namespace, "address": self.address})
