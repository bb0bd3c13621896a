"""An admission check that requests nodes where nothing provisions them."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import AdmissionCheck, ClusterQueue, KubernetesObject, ProvisioningRequestConfig, ResourceFlavor
from flexspot.policies.inventory.views import Autopilot, Inventory
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.queues import CONTROLLER, GKE_CLASS, asked_for, configs_of, on_eks_alone, queued
from flexspot.policies.values.field import UNKNOWN, Tri, all_of, negated

_DEFINITION = "provisioningrequests.autoscaling.x-k8s.io"
_NAME_IT = "name an existing ProvisioningRequestConfig: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: NAME}"
_LEAVE_OUT = "remove the check where nothing serves ProvisioningRequests, and remove it from the queues that name it"


def judge(asker: AdmissionCheck | ClusterQueue, _: Parameters, inventory: Inventory) -> Outcome:
    """The check must have a configuration, and its cluster whom that names; in a queue it is for flavors of queued pools alone."""
    return _check(asker, inventory) if isinstance(asker, AdmissionCheck) else _queue(asker, inventory)


def _check(check: AdmissionCheck, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    controller, parameters = check.spec.at("controllerName"), check.spec.at("parameters")
    kind, name = (parameters.at(field).text() for field in ("kind", "name"))
    if controller.equals(CONTROLLER) is False:
        return not_applicable("another controller owns the check")
    if not controller.known or kind is UNKNOWN or name is UNKNOWN:
        return undecided("spec.controllerName or spec.parameters is not known yet")
    if kind != "ProvisioningRequestConfig" or not name:
        return fails("spec.parameters names no ProvisioningRequestConfig: the check never becomes active", _NAME_IT, "spec.parameters")
    configs = configs_of(check, inventory)
    if not configs and inventory.tells(ProvisioningRequestConfig):
        return fails(f"spec.parameters names ProvisioningRequestConfig {name}, which does not exist", _NAME_IT, "spec.parameters")
    if len(configs) != 1 or not configs[0].spec.at("provisioningClassName").known:
        return undecided(f"ProvisioningRequestConfig {name} is not in the input, or its class is not known yet")
    asked = configs[0].spec.at("provisioningClassName").text()
    if asked == GKE_CLASS and on_eks_alone(inventory):
        return fails(f"ProvisioningRequestConfig {name} requests {asked}, which only GKE serves, but the pools are on EKS", _LEAVE_OUT)
    defined = any(each.identity.name == _DEFINITION for each in inventory.of(KubernetesObject))
    if asked != GKE_CLASS and inventory.closed and not defined:
        return fails(f"CustomResourceDefinition {_DEFINITION} does not exist: the check never becomes active", _LEAVE_OUT)
    return PASSES


def _queue(queue: ClusterQueue, inventory: Inventory) -> Outcome:
    flavors = inventory.by("name", ResourceFlavor, lambda each: each.name.text())
    asked = list(asked_for(queue, inventory))
    if all(asks is False for asks, _, _ in asked) or inventory.of(Autopilot) or on_eks_alone(inventory):
        return not_applicable("none of its checks requests nodes of a pool from GKE")
    broken: list[Tri] = []
    for asks, check, flavor in asked:
        serves, pool = queued(flavors[flavor][-1], inventory) if flavor in flavors else (UNKNOWN, "")
        broken.append(all_of([asks, negated(serves)]))
        if broken[-1] is True:
            return fails(
                f"check {check} requests queued nodes from GKE for flavor {flavor}, but {pool}, which serves it, is not queued",
                "list only flavors of queued pools in onFlavors, or set queuedProvisioning.enabled on the pool",
                "spec.admissionChecksStrategy",
            )
    return undecided("its checks, or the pools of its flavors, are not in the input") if UNKNOWN in broken else PASSES


RULE = Rule(
    code="FLX037",
    severity=Severity.HIGH,
    judge_among=judge,
    why="An inactive check makes every queue that names it inactive: nothing is admitted. An unanswered check holds the job and its quota.",
    remediation="Use the check only on GKE, with a ProvisioningRequestConfig, for flavors whose pools have queued provisioning.",
    link="https://kueue.sigs.k8s.io/docs/concepts/admission_check/provisioning_request/",
    sources=("Run against Kueue 0.19: without the ProvisioningRequest kind the check is inactive, and with it the ClusterQueue.",),
)
