"""The pods that an object creates, and their GPUs, in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.policies.admission.cel import (
    either,
    first_of,
    is_positive,
    list_at,
    mapping_at,
    optional,
    places,
    text,
    texts,
)
from flexspot.policies.inventory.pod_gpus import (
    ELEMENTS,
    ENTRIES,
    GPU_PREFIXES,
    POD_MAKERS,
    PodMaker,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


MATCHED = tuple(maker for maker in POD_MAKERS.values() if maker.kind != "DaemonSet")
"""Kinds that policies judge. Excludes DaemonSets, whose pods serve the nodes themselves."""

QUEUED_KINDS = ("Job", "JobSet", "CronJob")
"""Kinds that queues admit (flexspot.capacity.plan.kueue_configuration.FRAMEWORKS), and kinds that create these."""

_WITHOUT_GPUS = ("DaemonSet", "PodTemplate")

UNQUEUED_KINDS = tuple(dict.fromkeys(kind for _, kind in POD_MAKERS if kind not in (*QUEUED_KINDS, *_WITHOUT_GPUS)))
"""Kinds that queues do not admit, including those of operators. Their GPUs count to the team's share for services.

Excludes DaemonSets, which are refused, and PodTemplates, which create no pods.
"""

_WRITTEN_BY_PEOPLE = ("containers", "initContainers", "resourceClaims", "terminationGracePeriodSeconds")
"""Fields of a pod's spec that Kueue never writes. When it admits work, it adds labels, annotations, selectors, tolerations and gates."""

_OF_WORK_WRITTEN_BY_PEOPLE = (("backoffLimit",), ("activeDeadlineSeconds",), ("runPolicy", "activeDeadlineSeconds"))
"""Fields of objects with pod templates that people can update and that a rule reads. Kueue never writes them."""


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


def containers_where(condition: str, value: str) -> str:
    """Return CEL for a value for each container of `p` that meets a condition, in order.

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
