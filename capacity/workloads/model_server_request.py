"""What a person asks for of a model that answers requests."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from capacity.names import METRIC_QUANTITY, URL_PATH, Name
from capacity.workloads.request import WorkloadRequest

Path = Annotated[str, Field(pattern=URL_PATH)]


class ModelServerRequest(WorkloadRequest):
    """A request for a model server.

    `replicas` are always there; with `max_replicas` above it a HorizontalPodAutoscaler adds more, by `cpu_percent` of the cpu that a pod
    asks for, or by the average of `metric` (a metric of the pods, which an adapter must serve) against `metric_target`. `port` speaks HTTP;
    `ready_path` with 200 once the model is loaded, `live_path` (default: the same) as long as the process is well. `start_seconds` is the
    longest that loading may take. `drain_seconds` is how long an ending pod goes on serving while the endpoints forget it. `callers` are
    namespaces beside the team's own that may call it. `model_cache` is the claim of a ModelCache of the team, mounted at `model_path`;
    `model_cache_gib` the size of its cache on the node.
    """

    replicas: Annotated[int, Field(ge=1, le=1000)] = 2
    max_replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    cpu_percent: Annotated[int, Field(ge=1, le=100)] = 70
    metric: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    metric_target: Annotated[str, Field(pattern=METRIC_QUANTITY)] | None = None
    port: Annotated[int, Field(ge=1024, le=65_535)] = 8000
    ready_path: Path = "/health"
    live_path: Path | None = None
    start_seconds: Annotated[int, Field(ge=10, le=7200)] = 900
    drain_seconds: Annotated[int, Field(ge=0)] = 10
    callers: tuple[Name, ...] = ()
    model_cache: Name | None = None
    model_cache_gib: Annotated[int, Field(ge=0, le=10_000)] = 0
    model_path: Path = "/models"

    @model_validator(mode="after")
    def _scaling_makes_sense(self) -> Self:
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise ValueError(f"max_replicas is {self.max_replicas} and replicas {self.replicas}; give at least as many, or leave it out")
        if (self.metric is None) is not (self.metric_target is None):
            raise ValueError("metric and metric_target belong together; give both, or neither for the cpu")
        return self
