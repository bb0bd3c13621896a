"""One object as it was written: a Pulumi resource or a Kubernetes manifest, before anybody asks what it means."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from capacity.values.verdict import ObjectIdentity
from policies.values.field import Field
from policies.values.secrecy import Secrets, secrets_in
from policies.values.unknown import UNKNOWN, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_KUBERNETES = "kubernetes:"
_PATCH = "Patch"


@dataclass(frozen=True)
class Source:
    """What readers read. `family` is the API group of a Kubernetes object ("" for core), or `package:module` of a Pulumi type.

    `fields` are the resource's inputs. In Pulumi's `...Patch` types, which say only a part of an object, they are partial. `secrets` are
    the texts among them that a program marked as secret; a manifest has no such marks.
    """

    identity: ObjectIdentity
    family: str
    kind: str
    fields: Field
    secrets: Secrets = field(default_factory=Secrets)


def from_manifest(manifest: Mapping[str, Any]) -> Source:
    """A Kubernetes object as YAML or JSON holds it."""
    return _kubernetes(plain(dict(manifest)), "", "", "", partial=False)


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

    def text(default: str, *path: str) -> str:
        found = whole.at(*path).text()
        return default if found is UNKNOWN or not found else found

    api_version, kind = text(api_version, "apiVersion"), text(kind, "kind")
    group = api_version.rpartition("/")[0]
    identity = ObjectIdentity(
        api_version=api_version,
        kind=kind,
        name=text(name, "metadata", "name"),
        namespace=text("", "metadata", "namespace"),
    )
    return Source(identity=identity, family="" if group == "core" else group, kind=kind, fields=Field(fields, partial))
