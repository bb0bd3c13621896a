"""A notebook that costs nothing while nobody works in it."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired

import pulumi

from capacity.workloads.notebook import NOTEBOOK, notebook
from capacity.workloads.requests import NotebookRequest
from components.workloads.declared_objects import declare_service_objects
from components.workloads.workload_args import WorkloadArgs, plan_of, request_of


class NotebookArgs(WorkloadArgs):
    """Arguments of Notebook. Its image has Jupyter's server and Python 3."""

    idle_seconds: NotRequired[int | None]
    """Seconds without work in a kernel or a terminal after which it ends, 300 to 86400. Default: 3600."""

    nightly_stop: NotRequired[str | None]
    """When it ends every night, in UTC. Default: 20:00."""

    home: NotRequired[str | None]
    """Where its disk is mounted. Default: /home/jovyan."""

    home_gib: NotRequired[int | None]
    """The disk's size in GiB. Default: 50."""

    storage_class: NotRequired[str | None]
    """The disk's storage class. Default: the cluster's default one."""

    token_secret: NotRequired[str | None]
    """The Secret whose key token lets a browser in; it must be there. Default: the name and -token."""


class Notebook(pulumi.ComponentResource):
    """A disk that stays, and what starts a Jupyter server on it when its person wants one.

    A class that waits in a queue has sessions: `kubectl create job NAME --from=cronjob/NAME` starts one. A class without has a Deployment,
    which `kubectl scale` starts. Either ends when no kernel and no terminal has worked for so long, at the class's run limit, and at night.
    The team's submitters may start it and reach it by port-forward; it is open to nobody else.

    Raises WorkloadError, before anything is registered, for what has no place.
    """

    namespace: pulumi.Output[str]
    """The team's namespace."""

    start: pulumi.Output[str]
    """The command that starts it, known once all of it exists."""

    def __init__(self, name: str, args: NotebookArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = notebook(plan_of(args), request_of(NOTEBOOK, NotebookRequest, args))
        super().__init__("flexspot:index:Notebook", name, {**args}, opts)
        *_, last = declare_service_objects(name, self, objects, wakes=True)
        made, own = str(objects[-1]["metadata"]["namespace"]), str(objects[-1]["metadata"]["name"])
        session = objects[-1]["kind"] == "CronJob"
        start = f"create job {own} --from=cronjob/{own}" if session else f"scale deployment {own} --replicas=1"
        self.namespace = pulumi.Output.from_input(made)
        self.start = last.urn.apply(lambda _: f"kubectl -n {made} {start}")
        self.register_outputs({"namespace": self.namespace, "start": self.start})
