"""One object as it was written: a Pulumi resource or a Kubernetes manifest; and the pod templates of whatever makes pods."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from capacity.values.verdict import ObjectIdentity
from policies.inventory.pod_gpus import ELEMENTS, ENTRIES, POD_MAKERS
from policies.inventory.views import PodSet
from policies.values.field import UNKNOWN, Field, plain
from policies.values.secrecy import Secrets, secrets_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_KUBERNETES = "kubernetes:"
_PATCH = "Patch"


@dataclass(frozen=True)
class Source:
    """What readers read. `family` is the API group of a Kubernetes object ("" for core), or `package:module` of a Pulumi type.

    `template` are the fields of the launch template that a group of machines is made by, absent where none is known.
    `fields` are the resource's inputs. In Pulumi's `...Patch` types, which say only a part of an object, they are partial. `secrets` are
    the texts among them that a program marked as secret; a manifest has no such marks.
    """

    identity: ObjectIdentity
    family: str
    kind: str
    fields: Field
    secrets: Secrets = field(default_factory=Secrets)
    template: Field = field(default_factory=lambda: Field(None))


def from_manifest(manifest: Mapping[str, Any], *, partial: bool = False) -> Source:
    """A Kubernetes object as YAML or JSON holds it; `partial`: only a part of it."""
    return _kubernetes(plain(dict(manifest)), "", "", "", partial=partial)


def from_pulumi(type_token: str, name: str, inputs: Mapping[str, Any]) -> Source:
    """A Pulumi resource by its type token, resource name and inputs.

    Custom objects have the token `kubernetes:<apiVersion>:<Kind>`, typed ones `kubernetes:apps/v1:Deployment`; where the inputs name
    apiVersion and kind, those count. Other clouds' tokens are `gcp:container/nodePool:NodePool`, whose family is `gcp:container`.
    """
    fields, secrets = plain(dict(inputs)), secrets_in(inputs)
    family, _, kind = type_token.rpartition(":")
    if family.startswith(_KUBERNETES):
        partial = kind.endswith(_PATCH)
        read = _kubernetes(fields, family.removeprefix(_KUBERNETES), kind.removesuffix(_PATCH), name, partial=partial)
        return replace(read, secrets=secrets)
    identity = ObjectIdentity(api_version=family, kind=kind, name=name)
    return Source(identity=identity, family=family.partition("/")[0], kind=kind, fields=Field(fields), secrets=secrets)


def _kubernetes(fields: Any, api_version: str, kind: str, name: str, *, partial: bool) -> Source:
    whole = Field(fields)
    metadata = whole.at("metadata")

    def text(default: str, holder: Field, key: str) -> str:
        found = holder.at(key).text()
        return default if found is UNKNOWN or not found else found

    api_version, kind = text(api_version, whole, "apiVersion"), text(kind, whole, "kind")
    group = api_version.rpartition("/")[0]
    identity = ObjectIdentity(
        api_version=api_version, kind=kind, name=text(name, metadata, "name"), namespace=text("", metadata, "namespace")
    )
    return Source(identity=identity, family="" if group == "core" else group, kind=kind, fields=Field(fields, partial))


def read(source: Source) -> Iterator[PodSet]:
    """One view for each pod template of the object."""
    maker = POD_MAKERS.get((source.family, source.kind))
    if maker is None:
        return
    queued_as = source.fields.at(*maker.queued_as)
    for path in maker.paths:
        for where, pod, template, job in pod_places(source.fields, path.split(".")):
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
        for _, _, template, _ in pod_places(source.fields, path.split(".")):
            if template != source.fields:
                yield template.at("metadata", "annotations")


def _joined(walked: str, path: list[str]) -> str:
    return ".".join(step for step in (walked, *path) if step)


def pod_places(field: Field, path: list[str], walked: str = "") -> Iterator[tuple[str, Field, Field, Field]]:
    """Path and spec of each pod template that a path leads to, the template itself, and what holds it: in a Job its spec."""
    star = next((place for place, step in enumerate(path) if step in {ELEMENTS, ENTRIES}), None)
    if star is None:
        yield _joined(walked, path), field.at(*path), field.at(*path[:-1]), field.at(*path[:-2])
        return
    listed = _joined(walked, path[:star])
    members = field.at(*path[:star])
    if not members.known:
        yield listed, members, members, members
    for key, member in members.parts().named:
        yield from pod_places(member, path[star + 1 :], f"{listed}[{key}]")
