"""The pods that an object creates, and their GPUs, in CEL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import ON_EC2, RESOURCES
from flexspot.policies.admission.cel import (
    either,
    every,
    first_of,
    is_positive,
    let,
    list_at,
    mapping_at,
    optional,
    places,
    sentence,
    text,
    text_at,
    texts,
)
from flexspot.policies.inventory.gpu_machines import (
    AMD_FAMILY,
    EC2_CATEGORIES,
    EC2_FAMILY,
    GCE_MACHINE,
    GKE_LABELS,
    MACHINE_FAMILY_LABEL,
    MACHINE_LABELS,
    PREFIXES,
)
from flexspot.policies.inventory.pod_gpus import (
    ELEMENTS,
    ENTRIES,
    GPU_PREFIXES,
    GPU_RUNTIME,
    POD_MAKERS,
    POOL_LABELS,
    REQUIRED_TERMS,
    SYSTEM_NAMESPACE,
    SYSTEM_PRIORITY,
    PodMaker,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


MATCHED = tuple(maker for maker in POD_MAKERS.values() if maker.kind != "DaemonSet")
"""Kinds that policies judge. Excludes DaemonSets, whose pods serve the nodes themselves."""

_WRITTEN_BY_PEOPLE = ("containers", "initContainers", "resourceClaims", "terminationGracePeriodSeconds")
"""Fields of a pod's spec that Kueue never writes. When it admits work, it adds labels, annotations, selectors, tolerations and gates."""

_OF_WORK_WRITTEN_BY_PEOPLE = (("backoffLimit",), ("activeDeadlineSeconds",), ("runPolicy", "activeDeadlineSeconds"))
"""Fields of objects with pod templates that people can update and that a rule reads. Kueue never writes them."""

JOB_AT = "p.where.substring(0, p.where.lastIndexOf('.template.spec'))"
"""CEL for the path to the spec of the Job that creates the pods of `p`."""


def pod_templates(version: str) -> str:
    """Return CEL for a list with a map for each pod template of `version`, which is object or oldObject.

    `where` is the path to the pod's spec, `pod` the spec, `template` its parent, and `job` the spec of the Job that creates the pods, if
    there is one. Needs the variable `places`.
    """
    return _by_kind(MATCHED, lambda maker: " + ".join(_pod_template(maker, path, version) for path in maker.paths))


def pod_sets() -> str:
    """Return CEL for the pod templates of the object, with `containers`, which are all containers, and `asks`: true if they want GPUs."""
    kept = ", ".join(f"'{each}': dyn(p.{each})" for each in ("where", "pod", "template"))
    is_gpu = either(*(f"k.startsWith({text(prefix)})" for prefix in GPU_PREFIXES))
    limits = f"{mapping_at('c', 'resources', 'limits')}.exists(k, ({is_gpu}) && {is_positive('c.resources.limits[k]')})"
    # A claim on devices (DRA) counts as well.
    asks = either(f"{_ALL_CONTAINERS}.exists(c, {limits})", f"size({list_at('p.pod', 'resourceClaims')}) > 0")
    found = f"{kept}, 'job': dyn({mapping_at('p', 'job')}), 'containers': dyn({_ALL_CONTAINERS}), 'asks': dyn({asks})"
    return f"({pod_templates('object')}).map(p, {{{found}}})"


def changed_by_people() -> str:
    """Return CEL that is true if people changed what rules judge. True for all requests except updates.

    For kinds that Kueue starts and stops, only fields that it never writes are compared, so that its own updates are never judged.
    """
    suspended = [maker for maker in MATCHED if maker.suspended]
    others = [maker for maker in MATCHED if not maker.suspended]
    fields = ", ".join(f"dyn({optional('p', field)}.orValue(null))" for field in _WRITTEN_BY_PEOPLE)
    now, before = (f"({_specs(suspended, base)}).map(p, [{fields}]) + [[{', '.join(_of_work(base))}]]" for base in ("object", "oldObject"))
    changed = first_of(
        (f"object.kind in {texts(maker.kind for maker in suspended)}", f"{now} != {before}"),
        (f"object.kind in {texts(maker.kind for maker in others)}", f"({_specs(others, 'object')}) != ({_specs(others, 'oldObject')})"),
        otherwise=f"{mapping_at('object', 'spec')} != {mapping_at('oldObject', 'spec')}",
    )
    return f"request.operation != 'UPDATE' || ({changed})"


def _of_work(base: str) -> list[str]:
    return [f"dyn({optional(base, 'spec', *path)}.orValue(null))" for path in _OF_WORK_WRITTEN_BY_PEOPLE]


def owner_is_not_judged() -> str:
    """Return CEL that is true if the object's owner is not judged itself, or there is none. Nodes create their own pods."""
    judged = [f"{maker.group or 'v1'}/{maker.kind}" for maker in POD_MAKERS.values()]
    owner = f"o.?controller.orValue(false) && (o.apiVersion.split('/')[0] + '/' + o.kind) in {texts([*judged, 'v1/Node'])}"
    return f"!{list_at('object', 'metadata', 'ownerReferences')}.exists(o, {owner})"


def queued_metadata(field: str) -> str:
    """Return CEL for the `labels` or `annotations` that Kueue reads."""
    others = [maker for maker in MATCHED if maker.queued_as != ("metadata",)]
    cases = [(f"object.kind == {text(maker.kind)}", mapping_at("object", *maker.queued_as, field)) for maker in others]
    return first_of(*cases, otherwise=mapping_at("object", "metadata", field))


def _by_kind(makers: Iterable[PodMaker], expression: Callable[[PodMaker], str]) -> str:
    by_expression: dict[str, list[str]] = {}
    for maker in makers:
        by_expression.setdefault(expression(maker), []).append(maker.kind)
    return first_of(*((f"object.kind in {texts(kinds)}", found) for found, kinds in by_expression.items()), otherwise="[]")


def _split(path: str) -> tuple[list[str], str, list[str]]:
    """Return the steps before a list's elements or a map's entries, which of the two it is, and the steps after it."""
    steps = path.split(".")
    star = next((place for place, step in enumerate(steps) if step in {ELEMENTS, ENTRIES}), None)
    return (steps, "", []) if star is None else (steps[:star], steps[star], steps[star + 1 :])


def _specs(makers: Iterable[PodMaker], base: str) -> str:
    """Return CEL for the specs of the pods. Missing ones are empty."""
    return _by_kind(makers, lambda maker: " + ".join(_spec(base, path) for path in maker.paths))


def _spec(base: str, path: str) -> str:
    before, star, after = _split(path)
    if not star:
        return f"[{mapping_at(base, *before)}]"
    members = list_at(base, *before) if star == ELEMENTS else mapping_at(base, *before)
    member = "m" if star == ELEMENTS else f"{'.'.join([base, *before])}[m]"
    return f"{members}.map(m, {mapping_at(member, *after)})"


def _pod_template(maker: PodMaker, path: str, version: str) -> str:
    before, star, after = _split(path)
    if not star:
        return f"({optional(version, *before)}.hasValue() ? [{_entry(maker, version, before, text(path))}] : [])"
    place = "string(i)" if star == ELEMENTS else "i"
    where = f"{text('.'.join(before) + '[')} + {place} + {text('].' + '.'.join(after))}"
    member = f"{'.'.join([version, *before])}[i]"
    keys = places(list_at(version, *before)) if star == ELEMENTS else mapping_at(version, *before)
    return f"{keys}.filter(i, {optional(member, *after)}.hasValue()).map(i, {_entry(maker, member, after, where)})"


def _entry(maker: PodMaker, base: str, steps: list[str], where: str) -> str:
    pod, template = ".".join([base, *steps]), ".".join([base, *steps[:-1]])
    job = f", 'job': dyn({'.'.join([base, *steps[:-2]])})" if maker.makes_jobs else ""
    return f"{{'where': dyn({where}), 'pod': dyn({pod}), 'template': dyn({template}){job}}}"


_CONTAINERS = ("initContainers", "containers")
_ALL_CONTAINERS = "(" + " + ".join(list_at("p.pod", field) for field in _CONTAINERS) + ")"

ASKS = "p.asks"
"""CEL that is true if `p` requests GPUs."""

SERVES_NODES = either(
    f"request.?namespace.orValue('') == {text(SYSTEM_NAMESPACE)}",
    f"{text_at('p.pod', 'priorityClassName')}.startsWith({text(SYSTEM_PRIORITY)})",
)
"""CEL that is true if `p` may run on GPU nodes without a GPU."""


def containers_where(condition: str, value: str = "NAME") -> str:
    """Return CEL for a text for each container of `p` that meets a condition, in order.

    The default text is the container's name in messages.

    Both arguments are CEL with the placeholders CONTAINER, for the container, and NAME, for its name in messages.
    """
    found: list[str] = []
    for field in _CONTAINERS:
        listed = list_at("p.pod", field)
        container = f"p.pod.{field}[i]"
        name = f"('container ' + {container}.?name.orValue({text(field + '[')} + string(i) + ']'))"
        here, made = (each.replace("CONTAINER", container).replace("NAME", name) for each in (condition, value))
        found.append(f"{places(listed)}.filter(i, {here}).map(i, {made})")
    return f"({' + '.join(found)})"


def unbacked(resource: str) -> str:
    """Return CEL that is true if CONTAINER requests GPUs by a resource without a limit."""
    return (
        f"{optional('CONTAINER', 'resources', 'requests')}[?{text(resource)}].hasValue() && "
        f"!{optional('CONTAINER', 'resources', 'limits')}[?{text(resource)}].hasValue()"
    )


def _starts(expression: str, *endings: str) -> str:
    return either(*(f"{expression}.startsWith({text(prefix + ending)})" for prefix in PREFIXES for ending in endings))


def _one_of(expression: str, *endings: str) -> str:
    return f"{expression} in {texts(prefix + ending for prefix in PREFIXES for ending in endings)}"


def _names_gpus(key: str) -> str:
    """Return CEL that is true if only nodes with accelerators have a label."""
    return either(
        f"{key} in {texts(GKE_LABELS)}",
        *map(partial(_is_own, key), RESOURCES),
        _starts(key, *_KARPENTER_PREFIXES.values()),
    )


_KARPENTER_PREFIXES = {kind: f"{kind.instance_label}-" for kind in ON_EC2}
"""Prefixes of Karpenter's labels that describe the devices of a kind."""


def _is_own(key: str, resource: str) -> str:
    """Return CEL that is true if a label is named after a resource."""
    return f"{key} == {text(resource)} || {key}.startsWith({text(resource + '.')})"


def _karpenter_cases(key: str, value: str) -> list[tuple[str, str]]:
    """Return the cases of all kinds together, because parsers of CEL support only some 30 nested cases."""
    begins = _KARPENTER_PREFIXES.values()
    ends = {f"{each}manufacturer": kind.manufacturer for kind, each in _KARPENTER_PREFIXES.items()}
    made_by = either(*(every(f"{key}.endsWith({text(end)})", f"{value} == {text(maker)}") for end, maker in ends.items()))
    return [
        (_one_of(key, *(f"{each}manufacturer" for each in begins)), made_by),
        (_one_of(key, *(f"{each}name" for each in begins)), f"!{value}.startsWith('radeon')"),
        (_starts(key, *begins), f"{value} != '0'"),
    ]


def _means_gpu(key: str, value: str) -> str:
    """Return CEL that is true if this value of a label means nodes with accelerators that rules know."""
    family = every(f"{value}.matches({text(f'^(?:{EC2_FAMILY})$')})", f"!{value}.startsWith({text(AMD_FAMILY)})")
    machine_family = family.replace(value, f"{value}.split('.')[0]")
    machine = f"{value}.contains('.') ? ({machine_family}) : {value}.matches({text(f'^(?:{GCE_MACHINE})$')})"
    return first_of(
        (f"{key} in {texts(GKE_LABELS)}", "true"),
        (either(*map(partial(_is_own, key), RESOURCES)), f"!({value} in ['false', '0'])"),
        *_karpenter_cases(key, value),
        (f"{key} in {texts(MACHINE_LABELS)}", machine),
        (f"{key} == {text(MACHINE_FAMILY_LABEL)}", f"({value} + '-any').matches({text(f'^(?:{GCE_MACHINE})$')})"),
        (_one_of(key, "family"), family),
        (_one_of(key, "category"), f"{value} in {texts(EC2_CATEGORIES)}"),
        otherwise="false",
    )


_SELECTOR = mapping_at("p.pod", "nodeSelector")
_SELECTED = f"{_SELECTOR}.filter(k, {_means_gpu('k', 'string(p.pod.nodeSelector[k])')})"
_VALUES = list_at("e", "values")
_DEMANDS = first_of(
    (f"{text_at('e', 'key')} in {texts(GKE_LABELS)}", f"{text_at('e', 'operator')} in ['In', 'Exists', 'Gt', 'Gte']"),
    (
        f"{text_at('e', 'operator')} == 'In'",
        f"size({_VALUES}) > 0 && {_VALUES}.all(v, {_means_gpu(text_at('e', 'key'), 'v')})",
    ),
    (_names_gpus(text_at("e", "key")), f"{text_at('e', 'operator')} in ['Exists', 'Gt', 'Gte']"),
    otherwise="false",
)
"""CEL that is true if an expression `e` of a node affinity allows only GPU machines."""
_TERMS = list_at("p.pod", *REQUIRED_TERMS)

TOLERATES = (
    f"{list_at('p.pod', 'tolerations')}.exists(t, {text_at('t', 'key')} in {texts(RESOURCES)}"
    f" && {text_at('t', 'effect')} != 'PreferNoSchedule')"
)
"""CEL that is true if a toleration of `p` names the taint of GPU nodes."""

_OTHERWISE = first_of(
    (f"size({_TERMS}) > 0 && {_TERMS}.all(t, {list_at('t', 'matchExpressions')}.exists(e, {_DEMANDS}))", "'node affinity'"),
    (f"{text_at('p.pod', 'runtimeClassName')} == {text(GPU_RUNTIME)}", "'runtimeClassName'"),
    (
        f"{_SELECTOR}.exists(k, k in {texts(sorted(POOL_LABELS))}) && {TOLERATES}",
        "'a selector of a pool and a toleration of its GPU taint'",
    ),
)
PLACED_BY = let("keys", _SELECTED, first_of(("size(keys) > 0", sentence("nodeSelector {key}", key="keys[0]")), otherwise=_OTHERWISE))
"""CEL for the field that restricts `p` to GPU nodes. Empty if none does."""
