"""Rules about Kueue's queues, cohorts and admission checks."""

from collections.abc import Iterator
from decimal import Decimal

from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, ObjectIdentity, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    KarpenterNodePool,
    KubernetesObject,
    LocalQueue,
    NodeClass,
    ProvisioningRequestConfig,
    ResourceFlavor,
    named,
)
from flexspot.policies.inventory.views import Autopilot, GkeNodePool, Inventory, Pool
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pods.scheduling_options import flavors_with_gpus
from flexspot.policies.pools import pools_for
from flexspot.policies.queues import cohort_of, fair_sharing, shares
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated

_JOIN = "set spec.cohortName (spec.cohort in v1beta1) to the cohort that it shares with, or remove the field"


@Rule(
    code="FLX034",
    severity=Severity.MEDIUM,
    why="Queues lend only within a cohort: without one, or alone in one, other queues' idle GPUs stay idle while this queue's jobs wait.",
    remediation="Give every team its own ClusterQueue, and put all of them in one cohort; limits then set how much each may borrow.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#cohort",
    sources=("kubernetes-sigs/kueue v0.19, pkg/webhooks/clusterqueue_webhook.go: both limits must be nil when the cohort is empty.",),
)
def borrowing_without_cohort(queue: ClusterQueue, _: Parameters, inventory: Inventory) -> Outcome:
    """A queue that has no other queue to borrow from, or that sets borrowing or lending limits without a cohort.

    For a queue alone in its cohort only borrowing settings fail. Lending is for queues that may join later.
    """
    cohort, limits, preemption = cohort_of(queue), list(_limits(queue)), queue.spec.at("preemption")
    reclaims = preemption.at("reclaimWithinCohort").equals("LowerPriority", "Any")
    borrows = preemption.at("borrowWithinCohort", "policy").equals("LowerPriority")
    if cohort.absent:
        if at := next((path for path, limit in limits if limit.known), ""):
            return fails(f"{at} is set but the queue has no cohort: the API server refuses it", _JOIN, at)
        if borrows is True or reclaims is True:
            at = f"spec.preemption.{'borrow' if borrows is True else 'reclaim'}WithinCohort"
            return fails(f"{at} is set but the queue has no cohort: there are no other queues to preempt", _JOIN, at)
    borrowing = (each for each in limits if each[0].endswith("borrowingLimit"))
    at = next((path for path, limit in borrowing if isinstance(amount := limit.number(), Decimal) and amount > 0), "")
    at = at or ("spec.preemption.borrowWithinCohort" if borrows is True else "")
    if at and isinstance(name := cohort.text(), str):
        others = shares(queue, inventory)
        if others is False and (inventory.closed or len(inventory.of(ClusterQueue)) > 1):
            return fails(
                f"{at} is set but the queue is alone in cohort {name}: there is no quota to borrow",
                "add the other teams' queues to the cohort, give a Cohort of that name quota to share, or remove the field",
                at,
            )
        return PASSES if others is True else undecided(f"the other members of cohort {name} are not known")
    if not (cohort.known and all(limit.known for _, limit in limits)) or reclaims is UNKNOWN or borrows is UNKNOWN:
        return undecided("its cohort, its limits or its preemption are not known yet")
    return PASSES if limits or reclaims or borrows else NOT_APPLICABLE


def _limits(queue: ClusterQueue) -> Iterator[tuple[str, Field]]:
    """Yield path and value of the borrowing and lending limits that are set. Quota that is not known yet yields an unknown value."""
    groups = queue.spec.at("resourceGroups")
    if not groups.known:
        yield "spec.resourceGroups", groups
    for group, fields in groups.parts().named:
        for flavor, of_flavor in fields.at("flavors").parts().named:
            for resource, of_resource in of_flavor.at("resources").parts().named:
                for name in ("borrowingLimit", "lendingLimit"):
                    if not (limit := of_resource.at(name)).absent:
                        yield f"spec.resourceGroups[{group}].flavors[{flavor}].resources[{resource}].{name}", limit


@Rule(
    code="FLX035",
    severity=Severity.MEDIUM,
    why="Fair sharing is off unless the configuration enables it: weights are then ignored, and the agreed shares are not enforced.",
    remediation="Turn on fairSharing in Kueue's configuration where weights are set, and use borrowWithinCohort only in clusters without "
    "it.",
    link="https://kueue.sigs.k8s.io/docs/concepts/preemption/#fair-sharing",
    sources=("Kueue 0.19, apis/kueue/v1beta2/clusterqueue_types.go: borrowWithinCohort is for classical preemption.",),
)
def fair_sharing_inert(queue: ClusterQueue | Cohort, _: Parameters, inventory: Inventory) -> Outcome:
    """Shares that Kueue ignores because of its configuration.

    Weights need fair sharing, and borrowWithinCohort needs it to be off. A weight of 1 is the default and has no effect.
    """
    weight = queue.spec.at("fairSharing", "weight").number()
    borrows = queue.spec.at("preemption", "borrowWithinCohort", "policy").equals("LowerPriority")
    weighs = UNKNOWN if weight is UNKNOWN else weight is not None and weight != 1
    if weighs is False and borrows is False:
        return NOT_APPLICABLE
    on, where = fair_sharing(inventory)
    inert, ignored = all_of([weighs, negated(on)]), all_of([borrows, on])
    if inert is True:
        return fails(
            f"spec.fairSharing.weight is {queue.spec.at('fairSharing', 'weight').text()}, but {where} does not enable fair sharing",
            f"set {where} to {{preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}}, or remove the weight",
            "spec.fairSharing.weight",
        )
    if ignored is True:
        return fails(
            f"spec.preemption.borrowWithinCohort is set, but {where} enables fair sharing, which ignores it",
            "remove borrowWithinCohort; under fair sharing, weights decide who may preempt",
            "spec.preemption.borrowWithinCohort",
        )
    return undecided(f"its weight, its preemption, or {where} is not known") if UNKNOWN in (inert, ignored) else PASSES


@Rule(
    code="FLX007",
    severity=Severity.HIGH,
    why="The API server accepts the queue, jobs are suspended in it, and none is ever admitted: it looks like a GPU shortage.",
    remediation="Set spec.namespaceSelector to the namespaces that may submit, or to {} for all of them.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#namespace-selector",
)
def queue_admits_no_namespace(queue: ClusterQueue, _: Parameters) -> Outcome:
    """A ClusterQueue to which no namespace may submit.

    An absent selector selects nothing; an empty one, `{}`, selects every namespace.
    """
    selector = queue.spec.at("namespaceSelector")
    if not selector.known:
        return undecided("spec.namespaceSelector is not known yet")
    if selector.absent:
        return fails("it has no namespaceSelector, so Kueue admits no workload to it", at="spec")
    return PASSES


@Rule(
    code="FLX008",
    severity=Severity.HIGH,
    why="Kueue's webhook refuses such a queue when it is applied, after the preview has passed and other resources have been created.",
    remediation="List the resources of every flavor as in coveredResources: the same names in the same order.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#flavors-and-resources",
)
def queue_resources_out_of_order(queue: ClusterQueue | Cohort, _: Parameters) -> Outcome:
    """A ClusterQueue or a Cohort whose flavors list resources in a different order from coveredResources.

    Kueue compares the two lists element by element.
    """
    groups = queue.spec.at("resourceGroups").parts()
    undetermined = not groups.complete
    for group, fields in groups.named:
        covered = _names(fields.at("coveredResources"), "")
        flavors = fields.at("flavors").parts()
        undetermined |= not flavors.complete or covered is UNKNOWN
        for flavor, flavor_fields in flavors.named:
            at = f"spec.resourceGroups[{group}].flavors[{flavor}].resources"
            listed = _names(flavor_fields.at("resources"), "name")
            if listed is UNKNOWN or covered is UNKNOWN:
                undetermined = True
            elif listed != covered:
                return fails(
                    f"{at} lists {', '.join(listed) or 'nothing'}, but its group covers {', '.join(covered) or 'nothing'}",
                    f"list in {at}, in this order: {', '.join(covered)}",
                    at,
                )
    if undetermined:
        return undecided("spec.resourceGroups is not fully known yet")
    return PASSES if groups.fields else NOT_APPLICABLE


def _names(listed: Field, key: str) -> list[str] | Unknown:
    parts = listed.parts()
    names = [(each.at(key) if key else each).text() for each in parts.fields]
    return UNKNOWN if not parts.complete or UNKNOWN in names else [str(name) for name in names]


@Rule(
    code="FLX038",
    severity=Severity.HIGH,
    why="Every job in the namespace stays suspended forever, and only a condition on the LocalQueue says why.",
    remediation="Set spec.clusterQueue to a declared ClusterQueue.",
    link="https://kueue.sigs.k8s.io/docs/concepts/local_queue/",
    sources=("Kueue 0.19, apis/kueue/v1beta2/localqueue_types.go: spec.clusterQueue is immutable.",),
)
def local_queue_without_cluster_queue(queue: LocalQueue, _: Parameters, inventory: Inventory) -> Outcome:
    """A LocalQueue whose ClusterQueue does not exist.

    Kueue accepts the LocalQueue and keeps its jobs until a ClusterQueue with that name exists.
    """
    target = queue.spec.at("clusterQueue")
    name = target.text()
    if name is None:
        return NOT_APPLICABLE
    if name is UNKNOWN:
        return undecided("spec.clusterQueue is not known yet")
    found = any_of(each.name.equals(name) for each in named(ClusterQueue, name, inventory))
    if found is True:
        return PASSES
    if found is UNKNOWN or not inventory.can_judge_missing(ClusterQueue):
        return undecided(f"ClusterQueue {name} is not in the input, which may be incomplete")
    there = ", ".join(sorted(each.identity.name for each in inventory.of(ClusterQueue))) or "none"
    return fails(
        f"spec.clusterQueue is {name}, which does not exist; found: {there}",
        f"declare ClusterQueue {name}; or recreate the LocalQueue with the right name, as spec.clusterQueue is immutable",
        "spec.clusterQueue",
    )


CONTROLLER = "kueue.x-k8s.io/provisioning-request"


GKE_CLASS = "queued-provisioning.gke.io"
"""Class of ProvisioningRequest that only GKE serves. The Cluster Autoscaler serves its own classes, on any cloud."""


_OF_AWS = ("karpenter.k8s.aws", "eks.amazonaws.com")


def configs_of(check: AdmissionCheck, inventory: Inventory) -> list[ProvisioningRequestConfig]:
    """Return the configurations in the input that may be the one that the check names."""
    name = check.spec.at("parameters", "name").text()
    if name is UNKNOWN:
        return list(inventory.of(ProvisioningRequestConfig))
    return list(named(ProvisioningRequestConfig, name or "", inventory))


def requests_gke(check: AdmissionCheck, inventory: Inventory) -> Tri:
    """Return whether the check requests queued capacity from GKE. UNKNOWN if its configuration is not in the input."""
    ours = check.spec.at("controllerName").equals(CONTROLLER)
    configs = configs_of(check, inventory)
    sure = len(configs) == 1 and check.spec.at("parameters", "name").known and configs[0].name.known
    return all_of([ours, configs[0].spec.at("provisioningClassName").equals(GKE_CLASS) if sure else UNKNOWN])


def on_eks_alone(inventory: Inventory) -> bool:
    """Return whether the input has capacity on EKS and none on GKE."""
    return inventory.once("on EKS alone", None, lambda: _on_eks_alone(inventory))


def _on_eks_alone(inventory: Inventory) -> bool:
    if inventory.of(GkeNodePool):
        return False
    references = [each.spec.at("template", "spec", "nodeClassRef", "group").text() for each in inventory.of(KarpenterNodePool)]
    classes = [each.group for each in inventory.of(NodeClass)]
    groups = any(pool.identity.api_version.startswith("aws:eks") for pool in inventory.of(Pool))
    return groups or any(group in _OF_AWS for group in (*references, *classes))


def requested_capacity(queue: ClusterQueue, inventory: Inventory) -> Iterator[tuple[Tri, str, str | Unknown | None]]:
    """Yield, for each check and GPU flavor of the queue, whether the check requests queued capacity from GKE, and the names of both."""
    known = inventory.by("name", AdmissionCheck, lambda each: each.name.text())
    for name, only in _checks_of(queue):
        checks = known.get(name.text()) if name.known else None
        asks = requests_gke(checks[-1], inventory) if checks else UNKNOWN
        for flavor in flavors_with_gpus(queue.spec) if asks is not False else ():
            listed = UNKNOWN if flavor is UNKNOWN else only.parts().any(lambda each, wanted=str(flavor): each.equals(wanted))
            yield all_of([asks, True if only.absent else listed]), str(name.text()), flavor


def _checks_of(queue: ClusterQueue) -> Iterator[tuple[Field, Field]]:
    """Yield the name of each check of the queue, and the flavors that it applies to (absent: all). v1beta1 may have only names."""
    for rule in queue.spec.at("admissionChecksStrategy", "admissionChecks").parts().fields:
        yield rule.at("name"), rule.at("onFlavors")
    for name in queue.spec.at("admissionChecks").parts().fields:
        yield name, name.at("onFlavors")


def queued(flavor: ResourceFlavor, inventory: Inventory) -> tuple[Tri, str]:
    """Return whether a pool that may serve the flavor has queued capacity, and the first pool that serves it. UNKNOWN if no pool does."""
    labels = flavor.spec.at("nodeLabels").parts()
    wanted = dict(labels.named)
    serving = [(pool.offer.carries(wanted), pool) for pool in pools_for(Pool, wanted, inventory)]
    first = next((pool.identity.described for carries, pool in serving if carries is True), "")
    queues = inventory.once("queued pools", None, lambda: _queues(inventory))
    answers = [
        all_of([carries, queues.get((pool.identity, pool.taints_field.removesuffix("nodeConfig.taints")), False)])
        for carries, pool in serving
    ]
    return (any_of(answers) if first and labels.complete else UNKNOWN), first


def _queues(inventory: Inventory) -> dict[tuple[ObjectIdentity, str], Tri]:
    """Return whether each GKE node pool has queued capacity, by its object and path."""
    return {(each.identity, each.where): each.pool.at("queuedProvisioning", "enabled").equals("true") for each in inventory.of(GkeNodePool)}


_DEFINITION = "provisioningrequests.autoscaling.x-k8s.io"


_NAME_IT = "name an existing ProvisioningRequestConfig: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: NAME}"


_LEAVE_OUT = "remove the check where nothing serves ProvisioningRequests, and remove it from the queues that name it"


@Rule(
    code="FLX037",
    severity=Severity.HIGH,
    why="An inactive check makes every queue that names it inactive: nothing is admitted. An unanswered check holds the job and its quota.",
    remediation="Use the check only on GKE, with a ProvisioningRequestConfig, for flavors whose pools have queued provisioning.",
    link="https://kueue.sigs.k8s.io/docs/concepts/admission_check/provisioning_request/",
    sources=("Run against Kueue 0.19: without the ProvisioningRequest kind the check is inactive, and with it the ClusterQueue.",),
)
def dws_check_without_provisioner(judged: AdmissionCheck | ClusterQueue, _: Parameters, inventory: Inventory) -> Outcome:
    """An admission check that requests nodes where nothing provisions them.

    The check needs a configuration, and the cluster a provisioner of the configured class. In a queue it must apply only to flavors of
    queued pools.
    """
    return _check(judged, inventory) if isinstance(judged, AdmissionCheck) else _queue(judged, inventory)


def _check(check: AdmissionCheck, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    controller, parameters = check.spec.at("controllerName"), check.spec.at("parameters")
    kind, name = (parameters.at(field).text() for field in ("kind", "name"))
    if controller.equals(CONTROLLER) is False:
        return NOT_APPLICABLE
    if not controller.known or kind is UNKNOWN or name is UNKNOWN:
        return undecided("spec.controllerName or spec.parameters is not known yet")
    if kind != "ProvisioningRequestConfig" or not name:
        return fails("spec.parameters names no ProvisioningRequestConfig: the check never becomes active", _NAME_IT, "spec.parameters")
    configs = configs_of(check, inventory)
    if not configs and inventory.can_judge_missing(ProvisioningRequestConfig):
        return fails(f"spec.parameters names ProvisioningRequestConfig {name}, which does not exist", _NAME_IT, "spec.parameters")
    if len(configs) != 1 or not configs[0].spec.at("provisioningClassName").known:
        return undecided(f"ProvisioningRequestConfig {name} is not in the input, or its class is not known yet")
    provisioning_class = configs[0].spec.at("provisioningClassName").text()
    if provisioning_class == GKE_CLASS and on_eks_alone(inventory):
        return fails(
            f"ProvisioningRequestConfig {name} requests {provisioning_class}, which only GKE serves, but the pools are on EKS", _LEAVE_OUT
        )
    defined = any(each.identity.name == _DEFINITION for each in inventory.of(KubernetesObject))
    if provisioning_class != GKE_CLASS and inventory.closed and not defined:
        return fails(f"CustomResourceDefinition {_DEFINITION} does not exist: the check never becomes active", _LEAVE_OUT)
    return PASSES


def _queue(queue: ClusterQueue, inventory: Inventory) -> Outcome:
    flavors = inventory.by("name", ResourceFlavor, lambda each: each.name.text())
    requests = list(requested_capacity(queue, inventory))
    if all(asks is False for asks, _, _ in requests) or inventory.of(Autopilot) or on_eks_alone(inventory):
        return NOT_APPLICABLE
    broken: list[Tri] = []
    for asks, check, flavor in requests:
        serves, pool = queued(flavors[flavor][-1], inventory) if flavor in flavors else (UNKNOWN, "")
        broken.append(all_of([asks, negated(serves)]))
        if broken[-1] is True:
            return fails(
                f"check {check} requests queued nodes from GKE for flavor {flavor}, but {pool}, which serves it, is not queued",
                "list only flavors of queued pools in onFlavors, or set queuedProvisioning.enabled on the pool",
                "spec.admissionChecksStrategy",
            )
    return undecided("its checks, or the pools of its flavors, are not in the input") if UNKNOWN in broken else PASSES


_GROUP = "kueue.x-k8s.io"


_OLD_VERSIONS = ("v1alpha1", "v1alpha2", "v1beta1")


_OLD_VALUES = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}


_CHANGED = {"cohort": "cohortName", "admissionChecks": "admissionChecksStrategy"}


@Rule(
    code="FLX009",
    severity=Severity.MEDIUM,
    why="The old versions are converted today and refused after a Kueue upgrade; pasted under v1beta2, their fields are unknown.",
    remediation="Use kueue.x-k8s.io/v1beta2, which Kueue has stored since 0.16.",
    link="https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/",
    sources=("https://github.com/kubernetes-sigs/kueue/releases/tag/v0.16.0",),
)
def deprecated_kueue_api(written: KubernetesObject, _: Parameters) -> Outcome:
    """A Kueue object in a deprecated API version.

    Also fails for the two values of a ClusterQueue that have been renamed.
    """
    if written.group != _GROUP:
        return NOT_APPLICABLE
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
