"""Karpenter's node classes: images, volumes, and references from NodePools."""

import re
from typing import Final

from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import KarpenterNodePool, KubernetesObject, NodeClass, named
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Cloud, Level, Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated
from flexspot.policies.values.finding import listed


@Rule(
    code="FLX027",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    why="Every image release makes all nodes drift: Karpenter replaces them, with their jobs, using an image that you have not tested.",
    remediation="Pin the image by an alias with a version or by its ID, and upgrade it like any other change.",
    link="https://karpenter.sh/docs/tasks/managing-amis/",
    sources=("https://karpenter.sh/docs/concepts/disruption/#drift",),
    parameters=(
        Parameter("moving-parameters", ("/latest/", "/recommended"), "Parts of an SSM parameter's name which show that AWS updates it."),
    ),
)
def ami_not_pinned(node_class: NodeClass, parameters: Parameters) -> Outcome:
    """A Karpenter node class whose image can change without a change to the class.

    A term is pinned if it names an image ID or a version of an alias. A term with tags counts as pinned, because only the owner of the
    images tags them.
    """
    if node_class.group != "karpenter.k8s.aws":
        return NOT_APPLICABLE
    terms = node_class.spec.at("amiSelectorTerms").parts()
    if terms.complete and not terms.fields:
        return NOT_APPLICABLE
    found = [(_moves(term, parameters.texts("moving-parameters")), place, term) for place, term in terms.named]
    for (moves, field), place, term in found:
        if moves is True:
            at = f"spec.amiSelectorTerms[{place}].{field}"
            return fails(f"{at} is {term.at(field).text()}, which selects a new AMI whenever AWS publishes one", _remedy(at, field), at)
    if not terms.complete or any(moves is UNKNOWN for (moves, _), _, _ in found):
        return undecided("spec.amiSelectorTerms is not fully known yet")
    return PASSES


def _moves(term: Field, moving: tuple[str, ...]) -> tuple[Tri, str]:
    """Return whether the term selects the newest of several images, and the field that does so."""

    def holds(field: str, marks: tuple[str, ...]) -> Tri:
        text = term.at(field).text()
        return UNKNOWN if text is UNKNOWN else any(mark in (text or "") for mark in marks)

    # An id selects one image, whatever the other fields are.
    if term.at("id").known and not term.at("id").absent:
        return False, "id"
    # Windows aliases have no version except latest.
    pinnable = negated(holds("alias", ("windows",)))
    answers = {
        "alias": all_of([pinnable, holds("alias", ("@latest",))]),
        "name": holds("name", ("*", "?")),
        "ssmParameter": holds("ssmParameter", moving),
    }
    found = any_of(answers.values())
    return found, next((field for field, answer in answers.items() if answer is found), "")


def _remedy(at: str, field: str) -> str:
    pinned = {"alias": "a version, such as al2023@v20260903", "name": "the full name of one AMI, and its owner"}
    return f"set {at} to {pinned.get(field, 'the parameter of one version')}; update it after you have tested a new AMI"


@Rule(
    code="FLX018",
    severity=Severity.HIGH,
    clouds=(Cloud.EKS,),
    why="The API server refuses the class, NodePools that refer to it never become ready, and pods wait without an explanation.",
    remediation="Set spec.amiSelectorTerms to a pinned alias, such as [{alias: al2023@v20260903}].",
    link="https://karpenter.sh/docs/concepts/nodeclasses/#specamiselectorterms",
)
def ami_not_selected(node_class: NodeClass, _: Parameters) -> Outcome:
    """A Karpenter node class that selects no image.

    In v1 amiFamily determines how nodes are set up, not which image they start.
    """
    if node_class.group != "karpenter.k8s.aws" or node_class.version != "v1":
        return NOT_APPLICABLE
    terms = node_class.spec.at("amiSelectorTerms")
    if not terms.known:
        return undecided("spec.amiSelectorTerms is not known yet")
    if terms.parts().fields:
        return PASSES
    also = "; amiFamily was enough to select one only in v1beta1" if not node_class.spec.at("amiFamily").absent else ""
    return fails(f"spec.amiSelectorTerms selects no AMI{also}", at="spec")


_ROOTS = ("/dev/xvda", "/dev/sda1")


_PLAIN = {"al2", "al2023"}


"""Image families that use only the root volume. Bottlerocket has a second volume; other images are outside the rule."""


_SETS_UP_VOLUME = re.compile(r"mkfs|mount|fstab|fs_setup|pvcreate|mdadm|zpool")


@Rule(
    code="FLX028",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    clouds=(Cloud.EKS,),
    why="EBS bills the volume as long as the node exists, while scratch files and images fill the root volume until pods are evicted.",
    remediation="Remove the volume and enlarge the root volume; for fast scratch space use the machine's NVMe disks: "
    "instanceStorePolicy: RAID0.",
    link="https://karpenter.sh/docs/concepts/nodeclasses/#specblockdevicemappings",
    sources=("Karpenter AWS provider 1.14.1, pkg/providers/amifamily: pods' storage is on /dev/xvda, of Bottlerocket on /dev/xvdb.",),
)
def data_volume_never_mounted(node_class: NodeClass, _: Parameters) -> Outcome:
    """A volume that is paid for on every node and that no pod can use.

    Passes if user data contains a command for file systems outside comments. The rule does not read user data any further.
    """
    family = _family(node_class.spec)
    if node_class.group != "karpenter.k8s.aws" or (family is not UNKNOWN and family not in _PLAIN):
        return NOT_APPLICABLE
    mappings = node_class.spec.at("blockDeviceMappings").parts()
    found = [(_is_data(mapping), place, mapping) for place, mapping in mappings.named]
    possible = [each for each in found if each[0] is not False]
    if mappings.complete and not possible:
        return NOT_APPLICABLE
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
    """Return the image family: from the alias, or amiFamily if no image is selected. Empty for a custom image."""
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
    return any(_SETS_UP_VOLUME.search(line) for line in (text or "").splitlines() if not line.lstrip().startswith("#"))


_BUILT_IN = ("eks.amazonaws.com", "NodeClass", "default")


"""Node class that EKS Auto Mode creates by itself."""


@Rule(
    code="FLX017",
    severity=Severity.HIGH,
    clouds=(Cloud.EKS,),
    why="Karpenter accepts the pool but never makes it ready: pods that need it wait, and no event on them says why.",
    remediation="Declare the node class that the pool refers to, or correct the name.",
    link="https://karpenter.sh/docs/concepts/nodepools/#spectemplatespecnodeclassref",
)
def nodepool_references_missing_class(pool: KarpenterNodePool, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """A NodePool whose node class does not exist.

    The class must match the reference's group, kind and name. It is only known to be missing if the input has other classes of the kind or
    is complete.
    """
    reference = pool.spec.at("template", "spec", "nodeClassRef")
    group, kind, name = (reference.at(part).text() for part in ("group", "kind", "name"))
    if not reference.known or UNKNOWN in (group, kind, name):
        return undecided("spec.template.spec.nodeClassRef is not known yet")
    if name is None:
        return NOT_APPLICABLE
    if (group, kind, name) == _BUILT_IN:
        return PASSES
    found = any_of(each.name.equals(str(name)) for each in named(NodeClass, name, inventory) if _is_of(each, group, kind))
    if found is True:
        return PASSES
    # Classes of another kind prove nothing: a second provider's classes may be in another stack.
    there = inventory.once("node classes of a kind", (group, kind), lambda: _listed(group, kind, inventory))
    if chart := inventory.once("charts that may make node classes", None, lambda: _chart(inventory)):
        return undecided(f"{kind} {name} is not in the input, but {chart} may create it")
    if found is UNKNOWN or not (inventory.closed or (there and not inventory.excerpt)):
        return undecided(f"{kind} {name} is not in the input, which may be incomplete")
    return fails(
        f"spec.template.spec.nodeClassRef names {kind} {name} of {group or 'no group'}, which does not exist; found: {there or 'none'}",
        f"declare {kind} {name}, or name one that exists",
        "spec.template.spec.nodeClassRef",
    )


_CHARTS: Final = frozenset({"HelmRelease", "HelmChart", "Application", "ApplicationSet", "Release"})


"""Kinds of Flux, K3s, Argo CD and Pulumi's provider that install a chart or the contents of a remote folder."""


_WITHOUT_CLASSES: Final = (
    "karpenter",
    "kueue",
    "kube-",
    "aws-",
    "nvidia",
    "gpu-operator",
    "dcgm",
    "metrics-server",
    "prometheus",
    "cert-manager",
)


"""Prefixes of charts that create no node class. Karpenter's own are among them (charts/karpenter of its provider, v1.14.1)."""


def _chart(inventory: Inventory) -> str:
    """Return the object that installs a chart which may create node classes. Empty if there is none."""
    for each in inventory.of(KubernetesObject):
        if each.identity.kind in _CHARTS:
            spec, own = each.spec, each.fields
            named = (own.at("chart"), spec.at("chart"), spec.at("chart", "spec", "chart"), spec.at("source", "chart"))
            chart = next((text for field in named if isinstance(text := field.text(), str)), each.identity.name)
            if not chart.rstrip("/").rpartition("/")[2].startswith(_WITHOUT_CLASSES):
                return each.identity.described
    return ""


def _is_of(each: NodeClass, group: object, kind: object) -> bool:
    return each.identity.kind == kind and group in {None, each.group}


def _listed(group: object, kind: object, inventory: Inventory) -> str:
    """Return the classes of a kind as text."""
    names = listed(each.identity.name for each in inventory.of(NodeClass) if _is_of(each, group, kind))
    return f"{kind} {names}" if names else ""
