"""A GPU container whose image can change."""

from flexspot.capacity.values.names import MOVING_TAGS
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import PodSet
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN

UNPINNED = "{where}: the image of {container} {how}"
MOVES = "has the tag {tag}, which moves"
UNTAGGED = "has neither a tag nor a digest, which means latest"


def judge(pods: PodSet, parameters: Parameters) -> Outcome:
    """A digest pins it, and so does a tag that nobody is expected to move."""
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    allowed, moving = parameters.texts("allowed-registries"), parameters.texts("moving-tags")
    hangs = asks is UNKNOWN
    for name, container in pods.containers:
        image = container.at("image").text()
        hangs |= image is UNKNOWN
        if not isinstance(image, str) or image.startswith(allowed) or "@" in image:
            continue
        # A colon before the last slash is that of a registry's port.
        _, colon, tag = image.rpartition("/")[2].partition(":")
        if (not colon or tag in moving) and asks is True:
            how = MOVES.format(tag=tag) if colon else UNTAGGED
            return fails(UNPINNED.format(where=pods.where, container=name, how=how), at=pods.where)
    return undecided(f"{pods.where}: an image, or whether it requests GPUs, is not known yet") if hangs else PASSES


RULE = Rule(
    code="FLX050",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge=judge,
    why=(
        "An interrupted job can continue with a different program than it started with, and the pods of one job may run different programs."
    ),
    remediation="Name the image by digest (IMAGE@sha256:...), or by a tag of one release.",
    link="https://kubernetes.io/docs/concepts/containers/images/#image-names",
    parameters=(
        Parameter("moving-tags", MOVING_TAGS, "Tags that are moved to other images."),
        Parameter("allowed-registries", ("localhost/",), "Prefixes of images that need no pin: registries whose tags never move."),
    ),
)
