"""Several pods at the same time on a claim that can be attached to only one node."""

from flexspot.capacity.catalog.node_labels import HOSTNAME_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import PersistentVolumeClaim, named
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pods.selection import copies_of
from flexspot.policies.pods.volumes import claims_of
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, any_of

_OF_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}


def judge(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:
    """Pods that must share a node anyway, by name or by affinity, may share its volume; ReadWriteOncePod takes one pod even there."""
    claims = list(claims_of(pods.pod))
    if not claims:
        return not_applicable("it mounts no claim") if pods.pod.at("volumes").known else undecided(f"{pods.where}.volumes is not known yet")
    copies = copies_of(pods)
    if copies is not UNKNOWN and copies <= 1:
        return not_applicable("it runs one pod at a time")
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


RULE = Rule(
    code="FLX044",
    severity=Severity.MEDIUM,
    judge_among=judge,
    why=(
        "The disk is attached where the first pod runs; pods on other nodes wait for it, and the GPUs of the running "
        "pods sit idle meanwhile."
    ),
    remediation="Use a ReadWriteMany or ReadOnlyMany claim (a bucket, Filestore, FSx), or give each pod its own claim.",
    link="https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",
)
