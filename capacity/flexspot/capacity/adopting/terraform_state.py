"""Resources of a Terraform state: of `terraform show -json`, or of a terraform.tfstate of version 4. Sensitive values are not read."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.capacity.adopting.found import Block
from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES: Final = 256 * 1024 * 1024
"""Larger than any state: Terraform itself gets slow at a tenth of it, and the file is read into memory."""

_MOST_RESOURCES: Final = 200_000
_STATE_VERSION: Final = 4
_FORMAT: Final = re.compile(r"1\.\d+")
"""Version of the JSON. Minor versions only add fields (developer.hashicorp.com/terraform/internals/json-format)."""

_HOW_TO_WRITE: Final = "write it with: terraform show -json > state.json"


@dataclass(frozen=True)
class TerraformResource:
    """A resource of a state."""

    address: str
    type: str
    module: str
    managed: bool
    """False for a data source."""
    values: Block
    """Its attributes without those that Terraform marks as sensitive."""


def read_state(written: bytes, name: str) -> list[TerraformResource]:
    """Return the resources of a state, in its order.

    Raises ExplainedError (bad usage) if it is not a state; `name` is its name in messages.
    """
    if len(written) > MOST_BYTES:
        raise _unusable(name, f"is larger than {MOST_BYTES // 1024**2} MiB", "write the part of the cluster alone into a state")
    try:
        content: Any = json.loads(written.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _unusable(name, "is not text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise _unusable(name, f"is not JSON (line {error.lineno})") from None
    except (RecursionError, ValueError):
        raise _unusable(name, "is nested too deeply, or contains an impossible number") from None
    if not isinstance(content, dict):
        raise _unusable(name, "is no Terraform state: its JSON is not an object")
    fields = cast("dict[str, Any]", content)
    try:
        found = list(_resources(fields, name))
    except RecursionError:
        raise _unusable(name, "is nested too deeply") from None
    if not found:
        raise _unusable(name, "is a state without any resource")
    return found


def _resources(fields: dict[str, Any], name: str) -> Iterator[TerraformResource]:
    if "planned_values" in fields or "resource_changes" in fields:
        raise _unusable(name, "is a plan, which contains changes and not what exists")
    if "encrypted_data" in fields:
        raise _unusable(name, "is an encrypted state", "write it with: tofu show -json > state.json")
    version, form = fields.get("version"), fields.get("format_version")
    if isinstance(form, str):
        if not _FORMAT.fullmatch(form):
            raise _unusable(name, "is of a format_version that is not 1.x", "use a Terraform of version 1.x")
        yield from _bounded(_shown(fields, name), name)
    elif isinstance(version, int) and not isinstance(version, bool) and "resources" in fields:
        if version != _STATE_VERSION:
            raise _unusable(name, f"is a state of version {version if abs(version) < 1000 else '?'}, not {_STATE_VERSION}")  # noqa: PLR2004
        yield from _bounded(_stored(fields, name), name)
    else:
        raise _unusable(name, "is no Terraform state: it has neither format_version nor version and resources")


def _bounded(resources: Iterator[TerraformResource], name: str) -> Iterator[TerraformResource]:
    for count, each in enumerate(resources, start=1):
        if count > _MOST_RESOURCES:
            raise _unusable(name, f"has more than {_MOST_RESOURCES:,} resources")
        yield each


def _shown(fields: dict[str, Any], name: str) -> Iterator[TerraformResource]:
    """Yield the resources of `terraform show -json`. Nested modules are walked without recursion."""
    root = Block(fields).at("values", "root_module")
    if root is not None and not isinstance(root, dict):
        raise _unusable(name, "is no Terraform state: its root_module is not an object")
    todo: deque[Any] = deque([root or {}])
    while todo:
        module = todo.popleft()
        if not isinstance(module, dict):
            raise _unusable(name, "is no Terraform state: a module in it is not an object")
        part = cast("dict[str, Any]", module)
        path = part.get("address")
        for each in _list(part.get("resources"), name):
            resource = _object(each, name)
            if resource.get("deposed_key") is not None:
                continue
            values = _object(resource.get("values") or {}, name)
            kept = _without_sensitive(values, resource.get("sensitive_values"))
            yield _resource(resource.get("address"), resource, path, kept, name)
        todo += _list(part.get("child_modules"), name)


def _stored(fields: dict[str, Any], name: str) -> Iterator[TerraformResource]:
    """Yield the resources of terraform.tfstate, one for each instance."""
    for each in _list(fields["resources"], name):
        resource = _object(each, name)
        module = resource.get("module")
        data = "data." if resource.get("mode") == "data" else ""
        within = f"{module}." if isinstance(module, str) and module else ""
        for one in _list(resource.get("instances"), name):
            instance = _object(one, name)
            if instance.get("deposed") is not None:
                continue
            key = instance.get("index_key")
            index = f'["{key}"]' if isinstance(key, str) else f"[{key}]" if isinstance(key, int) else ""
            address = f"{within}{data}{resource.get('type')}.{resource.get('name')}{index}"
            attributes = dict(_object(instance.get("attributes") or {}, name))
            for path in _list(instance.get("sensitive_attributes"), name):
                first = Block({"steps": path}).block("steps").text("value")
                attributes.pop(first or "", None)
            yield _resource(address, resource, module, attributes, name)


def _resource(address: Any, resource: dict[str, Any], module: Any, values: dict[str, Any], name: str) -> TerraformResource:
    kind = resource.get("type")
    if not isinstance(address, str) or not isinstance(kind, str):
        raise _unusable(name, "is no Terraform state: a resource in it has no type or address")
    return TerraformResource(address, kind, module if isinstance(module, str) else "", resource.get("mode") != "data", Block(values))


def _without_sensitive(values: dict[str, Any], sensitive: Any) -> dict[str, Any]:
    """Return the values without those marked as sensitive, also in nested blocks and lists of blocks."""
    if not isinstance(sensitive, dict):
        return {} if sensitive is True else values
    marks = cast("dict[str, Any]", sensitive)
    kept: dict[str, Any] = {}
    for key, value in values.items():
        mark = marks.get(key)
        if mark is True:
            continue
        if isinstance(mark, list) and isinstance(value, list):
            pairs = zip(cast("list[Any]", value), [*cast("list[Any]", mark), *[None] * len(cast("list[Any]", value))], strict=False)
            kept[key] = [_part(each, of) for each, of in pairs if of is not True]
        else:
            kept[key] = _part(value, mark)
    return kept


def _part(value: Any, mark: Any) -> Any:
    return _without_sensitive(cast("dict[str, Any]", value), mark) if isinstance(value, dict) and isinstance(mark, dict) else value


def _list(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _unusable(name, "is no Terraform state: a list is missing where one is required")
    return cast("list[Any]", value)


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unusable(name, "is no Terraform state: an object is missing where one is required")
    return cast("dict[str, Any]", value)


def _unusable(name: str, problem: str, remedy: str = _HOW_TO_WRITE) -> ExplainedError:
    return ExplainedError(f"{name} {problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE)
