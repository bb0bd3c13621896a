"""The pod templates of whatever makes pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.inventory.pod_templates import ELEMENTS, ENTRIES, POD_MAKERS
from policies.inventory.views import PodSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.inventory.reading.source import Source
    from policies.values.field import Field


def read(source: Source) -> Iterator[PodSet]:
    """One view for each pod template of the object."""
    maker = POD_MAKERS.get((source.family, source.kind))
    if maker is None:
        return
    queued_as = source.fields.at(*maker.queued_as)
    for path in maker.paths:
        for where, pod, template, job in _places(source.fields, path.split(".")):
            if pod.absent:
                continue
            yield PodSet(
                identity=source.identity,
                concerned=True,
                partial=source.fields.partial,
                where=where,
                kind=source.kind,
                namespace=source.fields.at("metadata", "namespace"),
                pod=pod,
                labels=source.fields.at("metadata", "labels"),
                template_labels=template.at("metadata", "labels"),
                queue_labels=queued_as.at("labels"),
                job=job if maker.makes_jobs else None,
                object_spec=source.fields.at("spec"),
                annotations=tuple(each.at("annotations") for each in (source.fields.at("metadata"), queued_as, template.at("metadata"))),
            )


def annotations_of(source: Source) -> Iterator[Field]:
    """The annotations of the object and of its pod templates."""
    yield source.fields.at("metadata", "annotations")
    maker = POD_MAKERS.get((source.family, source.kind))
    for path in maker.paths if maker else ():
        for _, _, template, _ in _places(source.fields, path.split(".")):
            if template != source.fields:
                yield template.at("metadata", "annotations")


def _places(field: Field, path: list[str], walked: str = "") -> Iterator[tuple[str, Field, Field, Field]]:
    """Path and spec of each pod template, the template itself, and what holds it: in a Job its spec."""
    star = next((place for place, step in enumerate(path) if step in {ELEMENTS, ENTRIES}), None)
    if star is None:
        yield ".".join(filter(None, [walked, *path])), field.at(*path), field.at(*path[:-1]), field.at(*path[:-2])
        return
    listed = ".".join(filter(None, [walked, *path[:star]]))
    members = field.at(*path[:star])
    if not members.known:
        yield listed, members, members, members
    for key, member in members.parts().named:
        yield from _places(member, path[star + 1 :], f"{listed}[{key}]")
