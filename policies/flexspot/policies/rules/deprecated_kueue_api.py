"""A Kueue object in a deprecated API version."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ClusterQueue, KubernetesObject
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN

_GROUP = "kueue.x-k8s.io"
_OLD_VERSIONS = ("v1alpha1", "v1alpha2", "v1beta1")
_OLD_VALUES = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
_CHANGED = {"cohort": "cohortName", "admissionChecks": "admissionChecksStrategy"}


def judge(written: KubernetesObject, _: Parameters) -> Outcome:
    """The version, and in a ClusterQueue the two values that have other names now."""
    if written.group != _GROUP:
        return not_applicable("not a Kueue object")
    if written.version in _OLD_VERSIONS:
        renamed = [f"spec.{old} is now spec.{new}" for old, new in _CHANGED.items() if not written.spec.at(old).absent]
        also = f", where {', '.join(renamed)}" if renamed and isinstance(written, ClusterQueue) else ""
        return fails(f"its version is {written.version}, which Kueue has deprecated", f"use {_GROUP}/v1beta2{also}", "apiVersion")
    if isinstance(written, ClusterQueue):
        fungibility = written.spec.at("flavorFungibility")
        answers = {key: fungibility.at(key).equals(old) for key, old in _OLD_VALUES.items()}
        for key, answer in answers.items():
            if answer is True:
                old = _OLD_VALUES[key]
                return fails(f"{key} is {old}, which v1beta2 does not have", "set it to MayStopSearch", f"spec.flavorFungibility.{key}")
        if UNKNOWN in answers.values() and not written.partial:
            return undecided("spec.flavorFungibility is not known yet")
    return PASSES


RULE = Rule(
    code="FLX009",
    severity=Severity.MEDIUM,
    judge=judge,
    why="The old versions are converted today and refused after a Kueue upgrade; pasted under v1beta2, their fields are unknown.",
    remediation="Use kueue.x-k8s.io/v1beta2, which Kueue has stored since 0.16.",
    link="https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/",
    sources=("https://github.com/kubernetes-sigs/kueue/releases/tag/v0.16.0",),
)
