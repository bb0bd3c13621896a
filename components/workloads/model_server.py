"""A model that answers requests."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi

from capacity.workloads.model_server import MODEL_SERVER, model_server
from capacity.workloads.requests import ModelServerRequest
from components.workloads.model_server_args import ModelServerArgs
from components.workloads.service_objects import declare_service_objects
from components.workloads.workload_args import plan_of, request_of


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
