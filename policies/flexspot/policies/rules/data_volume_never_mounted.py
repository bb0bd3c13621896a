"""A volume that is paid for on every node and that no pod can use."""

import re

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import NodeClass
from flexspot.policies.judging import Cloud, Level, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, negated

_ROOTS = ("/dev/xvda", "/dev/sda1")
_PLAIN = {"al2", "al2023"}
"""Families of images that take one volume, their root, into use. Bottlerocket has a second of its own; other images are their owner's."""

_TAKES_INTO_USE = re.compile(r"mkfs|mount|fstab|fs_setup|pvcreate|mdadm|zpool")


def judge(node_class: NodeClass, _: Parameters) -> Outcome:
    """User data that speaks of file systems, outside comments, is taken to mount the volume; what it says is nobody else's business."""
    family = _family(node_class.spec)
    if node_class.group != "karpenter.k8s.aws" or (family is not UNKNOWN and family not in _PLAIN):
        return not_applicable("not an EC2NodeClass of Amazon Linux")
    mappings = node_class.spec.at("blockDeviceMappings").parts()
    found = [(_is_data(mapping), place, mapping) for place, mapping in mappings.named]
    possible = [each for each in found if each[0] is not False]
    if mappings.complete and not possible:
        return not_applicable("it has only a root volume")
    mounts = _mounts(node_class.spec.at("userData"))
    if mounts is True:
        return PASSES
    certain = next(((place, mapping) for answer, place, mapping in possible if answer is True), None)
    if certain is None or UNKNOWN in (mounts, family):
        return undecided("spec.blockDeviceMappings, spec.userData or the AMI family is not known yet")
    place, mapping = certain
    at = f"spec.blockDeviceMappings[{place}]"
    return fails(
        f"{at} attaches {mapping.at('deviceName').text()} in addition to the root volume, but spec.userData neither formats nor mounts it",
        f"remove {at} and give the root volume its size, or use the instance store with instanceStorePolicy: RAID0",
        at,
    )


def _family(spec: Field) -> str | Unknown:
    """What the alias says, else amiFamily where no image is chosen; empty for an image of somebody's own."""
    terms = spec.at("amiSelectorTerms").parts()
    alias = next((term.at("alias") for term in terms.fields if not term.at("alias").absent), None)
    text = alias.text() if alias else spec.at("amiFamily").text() if terms.complete and not terms.fields else ""
    if text is UNKNOWN or not terms.complete:
        return UNKNOWN
    return (text or "").partition("@")[0].lower()


def _is_data(mapping: Field) -> Tri:
    return all_of([negated(mapping.at("rootVolume").equals("true")), negated(mapping.at("deviceName").equals(*_ROOTS))])


def _mounts(user_data: Field) -> Tri:
    text = user_data.text()
    if text is UNKNOWN:
        return UNKNOWN
    return any(_TAKES_INTO_USE.search(line) for line in (text or "").splitlines() if not line.lstrip().startswith("#"))


RULE = Rule(
    code="FLX028",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    clouds=(Cloud.EKS,),
    judge=judge,
    why="EBS bills the volume as long as the node exists, while scratch files and images fill the root volume until pods are evicted.",
    remediation=(
        "Remove the volume and enlarge the root volume; for fast scratch space use the machine's NVMe disks: instanceStorePolicy: RAID0."
    ),
    link="https://karpenter.sh/docs/concepts/nodeclasses/#specblockdevicemappings",
    sources=("Karpenter AWS provider 1.14.1, pkg/providers/amifamily: pods' storage is on /dev/xvda, of Bottlerocket on /dev/xvdb.",),
)
