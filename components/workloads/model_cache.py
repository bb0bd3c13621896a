"""Model weights near the GPUs."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import Any, NotRequired, TypedDict

import pulumi

from capacity.workloads.model_cache import MODEL_CACHE, ModelCacheRequest, model_cache
from components.workloads.declared_objects import declare_service_objects
from components.workloads.workload_args import plan_of, request_of


class ModelCacheArgs(TypedDict):
    """Arguments of ModelCache."""

    platform: dict[str, Any]
    """The settings of the stack on whose cluster it is: what `flexspot:platform` holds in its file."""

    name: str
    """The name of the claim."""

    team: str
    """The team in whose namespace the claim is."""

    bucket: str
    """The bucket's name, without gs:// or s3://."""

    bucket_region: NotRequired[str | None]
    """The bucket's region; another than the cluster's is refused. Default: not checked."""

    folder: NotRequired[str | None]
    """The folder to mount, without a slash at its ends. Default: shared/models."""

    cache_gib: NotRequired[int | None]
    """GiB that a node keeps of what was read; 0 for nothing. Default: 100."""

    run_as_user: NotRequired[int | None]
    """User and group id that own the files, at least 1. Default: 1000."""


class ModelCache(pulumi.ComponentResource):
    """A folder of a bucket in the cluster's region that any pods of a team read at once, kept on the nodes' disks.

    ModelServer mounts it by `model_cache`. The team's identity must be allowed to read the folder: that of S3TeamAccess and GcsTeamAccess
    reads `shared` of the dataset bucket. No mount was made in a live cluster.

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
        self.register_outputs({"claim": self.claim, "volume": self.volume})
