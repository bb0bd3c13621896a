"""Storage: checkpoint places and buckets, and claims of volumes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Final

from flexspot.capacity.catalog.node_labels import HOSTNAME_LABEL
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.cloud_resources import (
    AwsProvider,
    Bucket,
    ClusterView,
    EksClusterView,
    GcsBucketView,
    GkeClusterView,
    S3BucketView,
)
from flexspot.policies.inventory.objects import PersistentVolumeClaim, named
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.selection import copies_of
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, any_of

_END_WITH_POD = ("emptyDir", "ephemeral")


_END_WITH_NODE = ("hostPath",)


@dataclass(frozen=True)
class Mount:
    """One volume mounted in one container."""

    path: Field
    name: str
    volume: Field
    """The pod's volume of that name. Absent if the pod lists none, as for volumes of a StatefulSet's claim templates, which outlive pods.
    """

    @property
    def ephemeral(self) -> str | Unknown:
        """Sort of volume, such as emptyDir, if it ends with the pod or the node. Empty if it outlives both."""
        if not self.volume.known:
            return UNKNOWN
        sources = [key for key, _ in self.volume.parts().named if key != "name"]
        # A volume without a sort is an emptyDir.
        if not self.volume.absent and not sources:
            return "emptyDir"
        return next((each for each in sources if each in (*_END_WITH_POD, *_END_WITH_NODE)), "")


def mounts_of(pod: Field, container: Field) -> Iterator[Mount]:
    """Yield the mounts of one container of `pod`."""
    listed = pod.at("volumes")
    volumes = {each.at("name").text(): each for each in listed.parts().fields}
    for mount in container.at("volumeMounts").parts().fields:
        name = mount.at("name").text()
        missing = Field(None) if listed.parts().complete and UNKNOWN not in volumes and name is not UNKNOWN else Field(UNKNOWN)
        yield Mount(mount.at("mountPath"), name if isinstance(name, str) else "a volume", volumes.get(name, missing))


def claims_of(pod: Field) -> Iterator[tuple[str, Field]]:
    """Yield field path and name of every claim among a pod's volumes."""
    for place, volume in pod.at("volumes").parts().named:
        claim = volume.at("persistentVolumeClaim")
        if not claim.absent:
            yield f"volumes[{place}].persistentVolumeClaim.claimName", claim.at("claimName")


MOUNTED = "{where}: {path} of {container}"


NAMED = "{where}: what {name} of {container} names"


IN_CONTAINER = "the container's own file system, which ends with the container"


IN_VOLUME = "volume {volume}, of the sort {sort}, which ends with the {end}"


@dataclass(frozen=True)
class CheckpointPlace:
    """A place where a container writes checkpoints."""

    described: str
    """Text for messages. Does not quote values that may be secret."""
    ends_with: str | Unknown
    """Storage whose end deletes the checkpoints, in words. Empty if they outlive pod and node."""
    at: str


def checkpoint_places(pods: PodSet, words: tuple[str, ...], names: tuple[str, ...]) -> Iterator[CheckpointPlace]:
    """Yield mounts whose path contains one of `words`, and paths given by an argument or a variable in `names`.

    Skips values that are not absolute paths, such as bucket URLs, and paths of files.
    """
    spelled = _spelled(names)
    for name, container in pods.containers:
        mounts = list(mounts_of(pods.pod, container))
        for mount in mounts:
            path = mount.path.text()
            if isinstance(path, str) and any(word in part.lower() for part in PurePosixPath(path).parts for word in words):
                yield CheckpointPlace(
                    MOUNTED.format(where=pods.where, path=path, container=name), _ends_with(mount), f"{pods.where}.volumes"
                )
        for given, path in _named_paths(container):
            if _plain(given) in spelled and path.startswith("/") and not PurePosixPath(path).suffix:
                yield CheckpointPlace(
                    NAMED.format(where=pods.where, name=given, container=name), _lost_with(path, mounts), f"{pods.where}.containers"
                )


@cache
def _spelled(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(_plain, names))


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    """Return a name without prefix, dashes and case, so that --trainer.checkpoint_dir and CHECKPOINT_DIR are equal."""
    return re.sub(r"[-_]", "", name.rpartition(".")[2]).lower()


def _named_paths(container: Field) -> Iterator[tuple[str, str]]:
    """Yield name and value of the arguments and variables that have a value."""
    arguments = [
        word for field in ("command", "args") for each in container.at(field).parts().fields for word in _script_words(each.text())
    ]
    for each, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if isinstance(each, str) and each.startswith("-"):
            name, equals, value = each.partition("=")
            if equals or isinstance(following, str):
                yield name, value if equals else str(following)
    for variable in container.at("env").parts().fields:
        name, value = variable.at("name").text(), variable.at("value").text()
        if isinstance(name, str) and isinstance(value, str):
            yield name, value


_SCRIPT: Final = re.compile(r"\s--?[A-Za-z]")


_QUOTES: Final = str.maketrans("", "", "'\"\\")


_BETWEEN: Final = re.compile(r"[\s;|&]+")
"""Separators of a script's words. Quotes are removed first, and a backslash at a line's end joins lines."""


def _script_words(argument: str | Unknown | None) -> list[str | Unknown | None]:
    """Return the words of an argument that is a script, such as one after `sh -c`, or the argument alone."""
    if isinstance(argument, str) and _SCRIPT.search(argument):
        return list(_BETWEEN.split(argument.translate(_QUOTES)))
    return [argument]


def _lost_with(path: str, mounts: Iterable[Mount]) -> str | Unknown:
    """Return the storage that a path is lost with: that of the nearest mount above it, or the container's own file system."""
    paths = [(each.path.text(), each) for each in mounts]
    above = [(where, each) for where, each in paths if isinstance(where, str) and PurePosixPath(path).is_relative_to(where)]
    if above:
        return _ends_with(max(above, key=lambda each: len(each[0]))[1])
    return UNKNOWN if any(where is UNKNOWN for where, _ in paths) else IN_CONTAINER


def _ends_with(mount: Mount) -> str | Unknown:
    sort = mount.ephemeral
    if sort is UNKNOWN or not sort:
        return sort
    return IN_VOLUME.format(volume=mount.name, sort=sort, end="node" if sort == "hostPath" else "pod")


_ZONE = re.compile(r"(?P<region>[a-z]+-[a-z]+\d+)-[a-z]")


# Multi-region locations of Cloud Storage and the prefixes of their regions. NAM4 is two regions in America, EUR4 in Europe.
_CONTINENTS = (("us", "us-"), ("nam", ("us-", "northamerica-")), ("eu", "europe-"), ("asia", "asia-"))


_SEVERAL_REGIONS = re.compile(r"us|eu|asia|(?:nam|eur|asia)\d+")


def region_of_cluster(cluster: ClusterView, inventory: Inventory) -> str | Unknown | None:
    """Return the region of a cluster. None if the input does not contain it."""
    if isinstance(cluster, GkeClusterView):
        location = cluster.fields.at("location").text()
        zone = _ZONE.fullmatch(location) if isinstance(location, str) else None
        return zone["region"] if zone else location
    return _aws_region(cluster, inventory)


def _aws_region(resource: Bucket | ClusterView, inventory: Inventory) -> str | Unknown | None:
    """Return a resource's own region, or that of the only provider. None with several providers: the resource may belong to any of them."""
    own = resource.fields.at("region")
    if not own.absent:
        return own.text()
    providers = {each.fields.at("region").text() for each in inventory.of(AwsProvider)}
    return next(iter(providers)) if len(providers) == 1 else None


def region_of_bucket(bucket: Bucket, inventory: Inventory) -> str | Unknown | None:
    """Return the region or location of a bucket, as written. None if the input does not contain it."""
    return bucket.fields.at("location").text() if isinstance(bucket, GcsBucketView) else _aws_region(bucket, inventory)


def is_near(bucket: Bucket, cluster: ClusterView, inventory: Inventory) -> Tri | None:
    """Return whether a bucket stores its data in the region of a cluster. None if the input lacks the region of either."""
    region = region_of_cluster(cluster, inventory)
    chosen = bucket.fields.at("customPlacementConfig", "dataLocations").parts().fields
    places = [each.text() for each in chosen] or [region_of_bucket(bucket, inventory)]
    if UNKNOWN in (region, *places):
        return UNKNOWN
    return None if None in (region, *places) else any(_covers(str(place).lower(), str(region)) for place in places)


def _covers(location: str, region: str) -> bool:
    """Return whether a location of Cloud Storage, in lower case, is the region or may include it."""
    if not _SEVERAL_REGIONS.fullmatch(location):
        return location == region
    return any(location.startswith(name) and region.startswith(begins) for name, begins in _CONTINENTS)


@Rule(
    code="FLX057",
    severity=Severity.MEDIUM,
    why="Each checkpoint and restart pays for traffic between regions, and takes longer than an interruption notice allows.",
    remediation="Keep checkpoints in the cluster's region.",
    link="https://cloud.google.com/storage/pricing#network-buckets",
    sources=("https://aws.amazon.com/s3/pricing/ (data transfer)",),
    parameters=(Parameter("name-parts", ("checkpoint", "ckpt"), "Words in the name or a label of a checkpoint bucket."),),
)
def checkpoint_bucket_in_other_region(bucket: GcsBucketView | S3BucketView, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A checkpoint bucket in a different region from the cluster that writes to it.

    Passes if any cluster is in the bucket's region, because the input does not say which cluster writes to it.
    """
    purpose = _is_for_checkpoints(bucket, parameters.texts("name-parts"))
    if purpose is False:
        return NOT_APPLICABLE
    kind = GkeClusterView if isinstance(bucket, GcsBucketView) else EksClusterView
    clusters = inventory.of(kind)
    if not clusters:
        return undecided("no cluster is in the input")
    near = [(cluster, is_near(bucket, cluster, inventory)) for cluster in clusters]
    if any_of(answer for _, answer in near if answer is not None) is True:
        return PASSES
    if any(answer is None for _, answer in near):
        return NOT_APPLICABLE
    if purpose is UNKNOWN or any(answer is UNKNOWN for _, answer in near):
        return undecided("its name or its region, or the region of a cluster, is not known yet")
    field = f"{bucket.where}{'location' if kind is GkeClusterView else 'region'}"
    regions = " or ".join(sorted({str(region_of_cluster(cluster, inventory)) for cluster in clusters}))
    own = region_of_bucket(bucket, inventory)
    return fails(f"it keeps checkpoints in {own} ({field}), but the clusters are in {regions}", f"create the bucket in {regions}", field)


def _is_for_checkpoints(bucket: Bucket, parts: tuple[str, ...]) -> Tri:
    """Return whether the bucket's name in the program or the cloud, a label or a tag contains one of `parts`."""
    fields = [bucket.fields.at(name) for name in ("name", "bucket")]
    fields += [each for name in ("labels", "tags") for each in bucket.fields.at(name).parts().fields]
    texts = [bucket.identity.name, *(each.text() for each in fields if not each.absent)]
    return any_of(UNKNOWN if text is UNKNOWN else any(part in str(text).lower() for part in parts) for text in texts)


LOST = "{place} is {ends}"


@Rule(
    code="FLX043",
    severity=Severity.HIGH,
    why="An interruption removes the pod and node, and the checkpoint with them: the job restarts at step one, and all GPU hours are lost.",
    remediation="Write checkpoints to a bucket (gs://, s3://), or to a claim or a CSI volume that outlives the pod.",
    link="https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/",
    sources=("https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",),
    parameters=(
        Parameter("path-words", ("checkpoint", "ckpt"), "Words in a part of a mount path which show that checkpoints are written there."),
        Parameter(
            "names",
            (
                "checkpoint-dir",
                "checkpoint-path",
                "checkpoint-directory",
                "checkpoints-dir",
                "ckpt-dir",
                "ckpt-path",
                "save-checkpoint-dir",
                # Transformers' Trainer and Megatron-LM.
                "output-dir",
                "save",
            ),
            "Names of arguments and variables that set where checkpoints are written; case, _ and - are ignored.",
        ),
        Parameter("kinds", ("CronJob", "Job", "JobSet", "Pod", "PyTorchJob", "RayJob"), "Kinds of work that run to completion."),
    ),
)
def checkpoint_on_ephemeral_volume(pods: PodSet, parameters: Parameters) -> Outcome:
    """A GPU job whose checkpoints are stored where they are lost with the pod or its node.

    Judges mounts whose path contains a checkpoint word, and absolute paths given by arguments or variables for checkpoints.
    """
    if pods.kind not in parameters.texts("kinds"):
        return NOT_APPLICABLE
    if pods.not_gpu_work:
        return NOT_APPLICABLE
    asks = pods.requests_gpus
    places = list(checkpoint_places(pods, parameters.texts("path-words"), parameters.texts("names")))
    for place in places:
        if isinstance(place.ends_with, str) and place.ends_with and asks is True:
            return fails(LOST.format(place=place.described, ends=place.ends_with), at=place.at)
    if asks is UNKNOWN or any(place.ends_with is UNKNOWN for place in places):
        return undecided(f"{pods.where}: whether it requests GPUs, or where it writes checkpoints, is not known yet")
    return PASSES if places else NOT_APPLICABLE


_OF_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}


@Rule(
    code="FLX044",
    severity=Severity.MEDIUM,
    why="The disk is attached where the first pod runs; pods on other nodes wait for it, and the GPUs of the running "
    "pods sit idle meanwhile.",
    remediation="Use a ReadWriteMany or ReadOnlyMany claim (a bucket, Filestore, FSx), or give each pod its own claim.",
    link="https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",
)
def shared_read_write_once_volume(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:
    """Several pods at the same time on a claim that can be attached to only one node.

    Pods that must share a node, by name or by affinity, may share its volume. ReadWriteOncePod allows a single pod even then.
    """
    claims = list(claims_of(pods.pod))
    if not claims:
        return NOT_APPLICABLE if pods.pod.at("volumes").known else undecided(f"{pods.where}.volumes is not known yet")
    copies = copies_of(pods)
    if copies is not UNKNOWN and copies <= 1:
        return NOT_APPLICABLE
    undetermined = False
    for at, claim in claims:
        modes = _modes(claim, pods, inventory)
        undetermined |= modes is UNKNOWN
        if modes is UNKNOWN or not modes <= _OF_ONE_NODE or (modes != {"ReadWriteOncePod"} and _together(pods) is not False):
            continue
        if copies is UNKNOWN:
            undetermined = True
            continue
        written = " and ".join(sorted(modes))
        return fails(
            f"{pods.where}.{at} is claim {claim.text()}, which is {written}, but {copies} pods mount it at once", at=f"{pods.where}.{at}"
        )
    if undetermined:
        return undecided(f"{pods.where}: a claim that it mounts is not in the input, or its access modes are not known yet")
    return PASSES


def _modes(claim: Field, pods: PodSet, inventory: Inventory) -> set[str] | Unknown:
    """Return the access modes of the claim with this name in the pods' namespace. UNKNOWN if it is not in the input."""
    if UNKNOWN in (claim.text(), pods.space):
        return UNKNOWN
    found = [each for each in named(PersistentVolumeClaim, claim.text(), inventory) if each.namespace == pods.space]
    listed = [each.spec.at("accessModes").parts() for each in found]
    texts = [mode.text() for each in listed for mode in each.fields]
    if not texts or UNKNOWN in texts or not all(each.complete for each in listed):
        return UNKNOWN
    return {str(text) for text in texts}


def _together(pods: PodSet) -> Tri:
    """Return whether all pods of the set run on the same node."""
    near = pods.pod.at("affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution").parts()
    named = not (pods.pod.at("nodeName").absent and pods.pod.at("nodeSelector", HOSTNAME_LABEL).absent)
    return any_of([named, near.any(lambda each: each.at("topologyKey").equals(HOSTNAME_LABEL))])
