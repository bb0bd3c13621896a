"""The pods that an object makes, in CEL: what policies.inventory.reading.pods is for the rules in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.admission.cel import first_of, list_at, mapping_at, optional, places, text, texts
from policies.inventory.pod_templates import ELEMENTS, ENTRIES, POD_MAKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from policies.inventory.pod_templates import PodMaker

MATCHED = tuple(maker for maker in POD_MAKERS.values() if maker.kind != "DaemonSet")
"""The kinds that policies look at. What a DaemonSet makes serves the nodes themselves."""

_WRITTEN_BY_PEOPLE = ("containers", "initContainers", "resourceClaims", "terminationGracePeriodSeconds")
"""Fields of a pod's spec that Kueue never writes. It adds labels, annotations, selectors, tolerations and gates when it admits work."""


def pod_sets() -> str:
    """A list with a mapping for each pod template.

    `where` is the path to the pod's spec, `pod` the spec, `template` what it belongs to, `job` the spec of the Job that makes the pods,
    missing where no Job does. Needs the variable `places`.
    """
    return _by_kind(MATCHED, lambda maker: _joined(_pod_set(maker, path) for path in maker.paths))


def changed_by_people() -> str:
    """Whether people changed what is judged: always so but for an update.

    Of kinds that Kueue starts and stops only what it never writes is compared, so that no update of Kueue is ever judged.
    """
    suspended = [maker for maker in MATCHED if maker.suspended]
    others = [maker for maker in MATCHED if not maker.suspended]
    fields = ", ".join(f"dyn({optional('p', field)}.orValue(null))" for field in _WRITTEN_BY_PEOPLE)
    now, before = (f"({_specs(suspended, base)}).map(p, [{fields}])" for base in ("object", "oldObject"))
    changed = first_of(
        (f"object.kind in {texts(maker.kind for maker in suspended)}", f"{now} != {before}"),
        (f"object.kind in {texts(maker.kind for maker in others)}", f"({_specs(others, 'object')}) != ({_specs(others, 'oldObject')})"),
        otherwise=f"{mapping_at('object', 'spec')} != {mapping_at('oldObject', 'spec')}",
    )
    return f"request.operation != 'UPDATE' || ({changed})"


def made_by_nobody_judged() -> str:
    """Whether what makes the object, if anything does, is of no kind that is judged itself. Nodes make their own pods."""
    judged = [f"{maker.group or 'v1'}/{maker.kind}" for maker in POD_MAKERS.values()]
    owner = f"o.?controller.orValue(false) && (o.apiVersion.split('/')[0] + '/' + o.kind) in {texts([*judged, 'v1/Node'])}"
    return f"!{list_at('object', 'metadata', 'ownerReferences')}.exists(o, {owner})"


def queued_metadata(field: str) -> str:
    """The `labels` or the `annotations` that Kueue reads."""
    others = [maker for maker in MATCHED if maker.queued_as != ("metadata",)]
    cases = [(f"object.kind == {text(maker.kind)}", mapping_at("object", *maker.queued_as, field)) for maker in others]
    return first_of(*cases, otherwise=mapping_at("object", "metadata", field))


def _by_kind(makers: Iterable[PodMaker], expression: Callable[[PodMaker], str]) -> str:
    by_expression: dict[str, list[str]] = {}
    for maker in makers:
        by_expression.setdefault(expression(maker), []).append(maker.kind)
    return first_of(*((f"object.kind in {texts(kinds)}", found) for found, kinds in by_expression.items()), otherwise="[]")


def _joined(lists: Iterable[str]) -> str:
    return " + ".join(lists)


def _split(path: str) -> tuple[list[str], str, list[str]]:
    """The steps before the elements of a list or the entries of a mapping, which of both it is, and the steps after it."""
    steps = path.split(".")
    star = next((place for place, step in enumerate(steps) if step in {ELEMENTS, ENTRIES}), None)
    return (steps, "", []) if star is None else (steps[:star], steps[star], steps[star + 1 :])


def _specs(makers: Iterable[PodMaker], base: str) -> str:
    """The pods' specs alone, empty ones for those that are missing."""
    return _by_kind(makers, lambda maker: _joined(_spec(base, path) for path in maker.paths))


def _spec(base: str, path: str) -> str:
    before, star, after = _split(path)
    if not star:
        return f"[{mapping_at(base, *before)}]"
    members = list_at(base, *before) if star == ELEMENTS else mapping_at(base, *before)
    member = "m" if star == ELEMENTS else f"{'.'.join([base, *before])}[m]"
    return f"{members}.map(m, {mapping_at(member, *after)})"


def _pod_set(maker: PodMaker, path: str) -> str:
    before, star, after = _split(path)
    if not star:
        return f"({optional('object', *before)}.hasValue() ? [{_entry(maker, 'object', before, text(path))}] : [])"
    place = "string(i)" if star == ELEMENTS else "i"
    where = f"{text('.'.join(before) + '[')} + {place} + {text('].' + '.'.join(after))}"
    member = f"{'.'.join(['object', *before])}[i]"
    keys = places(list_at("object", *before)) if star == ELEMENTS else mapping_at("object", *before)
    return f"{keys}.filter(i, {optional(member, *after)}.hasValue()).map(i, {_entry(maker, member, after, where)})"


def _entry(maker: PodMaker, base: str, steps: list[str], where: str) -> str:
    pod, template = ".".join([base, *steps]), ".".join([base, *steps[:-1]])
    job = f", 'job': dyn({'.'.join([base, *steps[:-2]])})" if maker.makes_jobs else ""
    return f"{{'where': dyn({where}), 'pod': dyn({pod}), 'template': dyn({template}){job}}}"
