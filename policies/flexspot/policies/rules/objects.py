"""Rules about objects of every kind: unknown fields, owner labels, image tags."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, cast

from flexspot.capacity.values.names import MOVING_TAGS
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Addition, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.field_schemas import KINDS, TYPES, fields
from flexspot.policies.inventory.objects import KubernetesObject, Namespace, named
from flexspot.policies.inventory.views import GpuPool, Inventory, PodSet
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, any_of


@Rule(
    code="FLX025",
    severity=Severity.MEDIUM,
    why="An unknown field is dropped, or refused when it is applied: what it was meant to do, such as set a limit, does not happen.",
    remediation="Use a field that the kind has in this version.",
    link="https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation",
    sources=(
        "The definitions of Kueue 0.19.2, Karpenter 1.14.1, its AWS provider 1.14.1 and JobSet 0.12.0.",
        "The models of the Kubernetes client 37.",
    ),
)
def unknown_field(written: KubernetesObject, _: Parameters) -> Outcome:
    """A field that the object's kind does not have.

    Checks every field down to where the kind accepts any value. Lists are checked element by element.
    """
    api = f"{written.group}/{written.version}" if written.group else written.version
    kind = f"{api}/{written.identity.kind}"
    known = fields()
    schema = known[KINDS].get(kind)
    if schema is None:
        return NOT_APPLICABLE
    found = list(_walk(written.fields.value, schema, known[TYPES], ""))
    wrong = [_advice(path, allowed) for path, allowed in found if path]
    if wrong:
        messages = [f"{path} is not a field of {kind}; {hint}" for path, hint, _ in wrong]
        more = f"; and {len(messages) - _NAMED_FIELDS} more" if len(messages) > _NAMED_FIELDS else ""
        return fails("; ".join(messages[:_NAMED_FIELDS]) + more, "; ".join(remedy for _, _, remedy in wrong[:_NAMED_FIELDS]), wrong[0][0])
    return undecided("a part of it is not known yet") if found and not written.partial else PASSES


_NAMED_FIELDS = 10


"""Most unknown fields of one object that a message names."""


_NAMED_ALLOWED = 12


"""Most allowed fields that a message names."""


def _advice(path: str, allowed: dict[str, Any]) -> tuple[str, str, str]:
    """Return the path of a field, the problem, and a remedy."""
    near = get_close_matches(path.rpartition(".")[2], allowed, n=1)
    if near:
        return path, f"did you mean {near[0]}?", f"use {near[0]} instead"
    names = sorted(allowed)
    more = f" and {len(names) - _NAMED_ALLOWED} more" if len(names) > _NAMED_ALLOWED else ""
    return path, f"allowed: {', '.join(names[:_NAMED_ALLOWED])}{more}", f"remove {path}"


_NESTED: Final = frozenset({dict, list, Unknown})


"""Types that contain fields, or may once their value is known."""


def _walk(written: Any, schema: Any, types: Mapping[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of each field that is not allowed, with the allowed fields. The path is empty for a part that is not known yet.

    Walks plain values instead of Fields for speed, because it visits every field of every object of a known kind.
    """
    allowed = types.get(schema) if isinstance(schema, str) else schema
    if allowed is None or written is None:
        return
    if written is UNKNOWN:
        yield "", {}
    elif isinstance(written, list):
        for place, element in enumerate(cast("list[Any]", written)):
            if type(element) in _NESTED:
                yield from _walk(element, schema, types, f"{path}[{place}]")
    elif isinstance(written, dict):
        for name, value in cast("dict[str, Any]", written).items():
            if name not in allowed:
                yield f"{path}.{name}" if path else name, allowed
            elif type(value) in _NESTED:
                yield from _walk(value, allowed[name], types, f"{path}.{name}" if path else name)


OWNERLESS = "it requests GPUs, but neither its labels nor those of its namespace name its owner"


OWNERLESS_REMEDY = "add the label {key} to it or to its namespace"


@Rule(
    code="FLX026",
    severity=Severity.LOW,
    why="Without an owner, no one pays for it, and no one is notified before it is removed: chargeback and alerts use these labels.",
    remediation="Name the owner of the pool or the work in a label or a tag.",
    link="https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/",
    parameters=(
        Parameter(
            "label-keys",
            ("flexspot.dev/owner", "flexspot.dev/team", "owner", "team", "Owner", "Team", "cost-center", "cost_center"),
            "Keys of labels and tags, one of which names the owner.",
        ),
    ),
)
def missing_owner_labels(judged: GpuPool | PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """GPU capacity or GPU work without an owner label.

    One of the required labels is enough. Work may inherit it from its namespace.
    """
    keys = parameters.texts("label-keys")
    if isinstance(judged, GpuPool):
        answer = _has(judged.owner_labels, keys)
        if answer is UNKNOWN:
            return undecided(f"{judged.owner_field} is not known yet")
        where = judged.owner_field
        if answer:
            return PASSES
        remedy, adds = f"add {_legal_key(keys, where)} to {where}", Addition(where, "", None)
        return fails(f"it creates GPU nodes, but {where} does not say who owns them", remedy, where, adds)
    if judged.not_gpu_work:
        return NOT_APPLICABLE
    answer = any_of(_has(labels, keys) for labels in (judged.labels, judged.template_labels, judged.queue_labels))
    if answer is True:
        return PASSES
    return _by_namespace(judged, keys, inventory, undecided_yet=UNKNOWN in (answer, judged.requests_gpus))


_GCP_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")


"""Valid key of a Google Cloud label: no dots, slashes or capitals.

docs.cloud.google.com/compute/docs/labeling-resources#requirements (2026-11-25)
"""


def _legal_key(keys: tuple[str, ...], field: str) -> str:
    """Return the first key that the field accepts. Google Cloud's labels accept fewer keys than Kubernetes'."""
    return next((key for key in keys if not field.endswith("resourceLabels") or _GCP_KEY.fullmatch(key)), keys[0])


def _by_namespace(pods: PodSet, keys: tuple[str, ...], inventory: Inventory, *, undecided_yet: bool) -> Outcome:
    if pods.space is UNKNOWN:
        return undecided("its namespace is not known yet")
    of_it = [_has(each.labels, keys) for each in named(Namespace, pods.space, inventory)]
    if any_of(of_it) is True:
        return PASSES
    if undecided_yet or UNKNOWN in of_it:
        return undecided("its labels, or those of its namespace, are not known yet")
    if not of_it and not inventory.closed:
        return undecided("its namespace, which may have an owner label, is not in the input")
    return fails(OWNERLESS, OWNERLESS_REMEDY.format(key=keys[0]), "metadata.labels", Addition("metadata.labels", "", None))


def _has(labels: Field, keys: tuple[str, ...]) -> Tri:
    listed = labels.parts()
    found = any(key in keys and (not value.known or bool(value.text())) for key, value in listed.named)
    return found or (False if listed.complete else UNKNOWN)


UNPINNED = "{where}: the image of {container} {how}"


MOVES = "has the tag {tag}, which moves"


UNTAGGED = "has neither a tag nor a digest, which means latest"


@Rule(
    code="FLX050",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="An interrupted job can continue with a different program than it started with, and the pods of one job may run different "
    "programs.",
    remediation="Name the image by digest (IMAGE@sha256:...), or by a tag of one release.",
    link="https://kubernetes.io/docs/concepts/containers/images/#image-names",
    parameters=(
        Parameter("moving-tags", MOVING_TAGS, "Tags that are moved to other images."),
        Parameter("allowed-registries", ("localhost/",), "Prefixes of images that need no pin: registries whose tags never move."),
    ),
)
def image_not_pinned(pods: PodSet, parameters: Parameters) -> Outcome:
    """A GPU container whose image can change.

    A digest pins the image, and so does a tag that is not expected to move.
    """
    if pods.not_gpu_work:
        return NOT_APPLICABLE
    asks = pods.requests_gpus
    allowed, moving = parameters.texts("allowed-registries"), parameters.texts("moving-tags")
    undetermined = asks is UNKNOWN
    for name, container in pods.containers:
        image = container.at("image").text()
        undetermined |= image is UNKNOWN
        if not isinstance(image, str) or image.startswith(allowed) or "@" in image:
            continue
        # A colon before the last slash belongs to a registry's port.
        _, colon, tag = image.rpartition("/")[2].partition(":")
        if (not colon or tag in moving) and asks is True:
            how = MOVES.format(tag=tag) if colon else UNTAGGED
            return fails(UNPINNED.format(where=pods.where, container=name, how=how), at=pods.where)
    return undecided(f"{pods.where}: an image, or whether it requests GPUs, is not known yet") if undetermined else PASSES
