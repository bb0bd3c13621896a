"""A checkpoint bucket in a different region from the cluster that writes to it."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.cloud_resources import Bucket, EksClusterView, GcsBucketView, GkeClusterView, S3BucketView
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pools import is_near, region_of_bucket, region_of_cluster
from flexspot.policies.values.field import UNKNOWN, Tri, any_of


def judge(bucket: GcsBucketView | S3BucketView, parameters: Parameters, inventory: Inventory) -> Outcome:
    """One cluster in the bucket's region is enough: which of several writes to it, nobody says."""
    purpose = _is_for_checkpoints(bucket, parameters.texts("name-parts"))
    if purpose is False:
        return not_applicable("nothing marks it as a bucket for checkpoints")
    kind = GkeClusterView if isinstance(bucket, GcsBucketView) else EksClusterView
    clusters = inventory.of(kind)
    if not clusters:
        return undecided("no cluster is in the input")
    near = [(cluster, is_near(bucket, cluster, inventory)) for cluster in clusters]
    if any_of(answer for _, answer in near if answer is not None) is True:
        return PASSES
    if any(answer is None for _, answer in near):
        return not_applicable("its region, or that of a cluster, is not in the input")
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


RULE = Rule(
    code="FLX057",
    severity=Severity.MEDIUM,
    judge_among=judge,
    why="Each checkpoint and restart pays for traffic between regions, and takes longer than an interruption notice allows.",
    remediation="Keep checkpoints in the cluster's region.",
    link="https://cloud.google.com/storage/pricing#network-buckets",
    sources=("https://aws.amazon.com/s3/pricing/ (data transfer)",),
    parameters=(Parameter("name-parts", ("checkpoint", "ckpt"), "Words in the name or a label of a checkpoint bucket."),),
)
