"""The id by which a provider knows a resource, as far as it follows from what the program said."""

from __future__ import annotations

import string
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from capacity.catalog.data_files import Record, Source, read_records

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = Path(__file__).with_name("resource_ids.yaml")

KUBERNETES = "kubernetes:"
"""What the type tokens of Kubernetes objects begin with."""

HELM_RELEASE = "kubernetes:helm.sh/v3:Release"


class _IdFile(Record):
    source: Source
    ids: dict[str, str] = Field(min_length=1)


def resource_id(token: str, inputs: Mapping[str, Any], place: Mapping[str, str]) -> str | None:
    """The id of a resource of the type `token`; None when the cloud makes it, or an input that it is made of is not known.

    `place` has what is the same for the whole stack: `account`, `partition`, `region`, `dns_suffix` of AWS, nothing for others.
    """
    if token == HELM_RELEASE:
        return _joined(inputs.get("namespace"), inputs.get("name"))
    if token.startswith(KUBERNETES):
        metadata: dict[str, Any] = inputs.get("metadata") or {}
        return _joined(metadata.get("namespace"), metadata.get("name"))
    form = resource_ids().get(token)
    if form is None:
        return None
    known = {**place, **{key: value for key, value in inputs.items() if isinstance(value, str)}}
    if "project" in known:
        known["project_host"] = _host(known["project"])
    needed = {name for _, name, _, _ in string.Formatter().parse(form) if name}
    return form.format_map(known) if needed <= known.keys() else None


@cache
def resource_ids() -> dict[str, str]:
    """The forms of ids, by type token."""
    return read_records(DATA, _IdFile).ids


def _joined(namespace: object, name: object) -> str | None:
    """The id of a Kubernetes object: `namespace/name`, or `name` of what is in no namespace."""
    if not isinstance(name, str) or not name:
        return None
    return f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name


def _host(project: str) -> str:
    """acme.com:ai as its service accounts' addresses have it: ai.acme.com."""
    domain, _, name = project.rpartition(":")
    return f"{name}.{domain}" if domain else name
