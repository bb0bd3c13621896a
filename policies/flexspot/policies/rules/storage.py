"""Where checkpoints are kept, and claims of volumes."""

import re

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
from flexspot.policies.pods.volumes import checkpoint_places, claims_of
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, any_of

_ZONE = re.compile(r"(?P<region>[a-z]+-[a-z]+\d+)-[a-z]")


# Locations of Cloud Storage with several regions, and how the names of these begin. NAM4 is two regions of America, EUR4 of Europe.
_CONTINENTS = (("us", "us-"), ("nam", ("us-", "northamerica-")), ("eu", "europe-"), ("asia", "asia-"))


_SEVERAL_REGIONS = re.compile(r"us|eu|asia|(?:nam|eur|asia)\d+")


def region_of_cluster(cluster: ClusterView, inventory: Inventory) -> str | Unknown | None:
    """The region; None where nothing that was given says it."""
    if isinstance(cluster, GkeClusterView):
        location = cluster.fields.at("location").text()
        zone = _ZONE.fullmatch(location) if isinstance(location, str) else None
        return zone["region"] if zone else location
    return _aws_region(cluster, inventory)


def _aws_region(resource: Bucket | ClusterView, inventory: Inventory) -> str | Unknown | None:
    """A resource's own region, or that of the one provider; with several, nobody says which makes the resource."""
    own = resource.fields.at("region")
    if not own.absent:
        return own.text()
    providers = {each.fields.at("region").text() for each in inventory.of(AwsProvider)}
    return next(iter(providers)) if len(providers) == 1 else None


def region_of_bucket(bucket: Bucket, inventory: Inventory) -> str | Unknown | None:
    """The region or the location, as it is written; None where nothing that was given says it."""
    return bucket.fields.at("location").text() if isinstance(bucket, GcsBucketView) else _aws_region(bucket, inventory)


def is_near(bucket: Bucket, cluster: ClusterView, inventory: Inventory) -> Tri | None:
    """Whether a bucket has its data in the region of a cluster; None where nothing says in which region one of them is."""
    region = region_of_cluster(cluster, inventory)
    chosen = bucket.fields.at("customPlacementConfig", "dataLocations").parts().fields
    places = [each.text() for each in chosen] or [region_of_bucket(bucket, inventory)]
    if UNKNOWN in (region, *places):
        return UNKNOWN
    return None if None in (region, *places) else any(_covers(str(place).lower(), str(region)) for place in places)


def _covers(location: str, region: str) -> bool:
    """Whether a location of Cloud Storage, in small letters, is the region, or several of which it may be one."""
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

    One cluster in the bucket's region is enough: which of several writes to it, nobody says.
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
    """By its name in the program or in the cloud, or by a label or a tag."""
    said = [bucket.fields.at(name) for name in ("name", "bucket")]
    said += [each for name in ("labels", "tags") for each in bucket.fields.at(name).parts().fields]
    texts = [bucket.identity.name, *(each.text() for each in said if not each.absent)]
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
                # Of Transformers' Trainer, and of Megatron-LM.
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

    Judged are mounts whose path says checkpoint, and absolute paths that an argument or a variable of such a name gives.
    """
    if pods.kind not in parameters.texts("kinds"):
        return NOT_APPLICABLE
    if pods.not_gpu_work:
        return NOT_APPLICABLE
    asks = pods.asks_for_gpus
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

    Pods that must share a node anyway, by name or by affinity, may share its volume; ReadWriteOncePod takes one pod even there.
    """
    claims = list(claims_of(pods.pod))
    if not claims:
        return NOT_APPLICABLE if pods.pod.at("volumes").known else undecided(f"{pods.where}.volumes is not known yet")
    copies = copies_of(pods)
    if copies is not UNKNOWN and copies <= 1:
        return NOT_APPLICABLE
    hangs = False
    for at, claim in claims:
        modes = _modes(claim, pods, inventory)
        hangs |= modes is UNKNOWN
        if modes is UNKNOWN or not modes <= _OF_ONE_NODE or (modes != {"ReadWriteOncePod"} and _together(pods) is not False):
            continue
        if copies is UNKNOWN:
            hangs = True
            continue
        written = " and ".join(sorted(modes))
        return fails(
            f"{pods.where}.{at} is claim {claim.text()}, which is {written}, but {copies} pods mount it at once", at=f"{pods.where}.{at}"
        )
    if hangs:
        return undecided(f"{pods.where}: a claim that it mounts is not in the input, or its access modes are not known yet")
    return PASSES


def _modes(claim: Field, pods: PodSet, inventory: Inventory) -> set[str] | Unknown:
    """The access modes of the claim of this name in the pods' namespace."""
    if UNKNOWN in (claim.text(), pods.space):
        return UNKNOWN
    found = [each for each in named(PersistentVolumeClaim, claim.text(), inventory) if each.namespace == pods.space]
    listed = [each.spec.at("accessModes").parts() for each in found]
    texts = [mode.text() for each in listed for mode in each.fields]
    if not texts or UNKNOWN in texts or not all(each.complete for each in listed):
        return UNKNOWN
    return {str(text) for text in texts}


def _together(pods: PodSet) -> Tri:
    """Whether all its pods are put on one node."""
    near = pods.pod.at("affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution").parts()
    named = not (pods.pod.at("nodeName").absent and pods.pod.at("nodeSelector", HOSTNAME_LABEL).absent)
    return any_of([named, near.any(lambda each: each.at("topologyKey").equals(HOSTNAME_LABEL))])
