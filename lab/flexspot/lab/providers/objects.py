"""Kubernetes objects as the Kubernetes provider reads and names them, and the fields of the built-in kinds."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any, Protocol

from pulumi.runtime.proto import provider_pb2

from flexspot.lab.providers.values import UNKNOWN, has_unknown, is_list, is_object

if TYPE_CHECKING:
    from flexspot.lab.cluster import KubeObject


_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}

_WRITTEN = re.compile(r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,3}))?")

_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}


class NoQuantityError(ValueError):
    """The API server would reject this value as a quantity."""


def canonical(written: str | float) -> str:
    """Return the canonical spelling of a quantity, as the API server writes it. Raises NoQuantityError."""
    match = _WRITTEN.fullmatch(str(written))
    if match is None or isinstance(written, bool):
        raise NoQuantityError(f"{written!r} is not a quantity")
    number, suffix, exponent = Decimal(match["number"]), match["suffix"] or "", match["exponent"]
    if suffix in _BINARY:
        return _binary(number * 1024 ** _BINARY[suffix])
    if exponent is not None:
        digits, power = _thousands(number.scaleb(int(exponent)))
        return f"{digits}e{power}" if power else str(digits)
    digits, power = _thousands(number.scaleb(_DECIMAL[suffix]))
    return f"{digits}{_SUFFIXES[power]}"


def _binary(amount: Decimal) -> str:
    # Below 1 Ki there is no binary suffix, and so no reason to round to whole numbers.
    if abs(amount) < 1024:  # noqa: PLR2004 -- 1 Ki
        digits, power = _thousands(amount)
        return f"{digits}{_SUFFIXES[power]}"
    whole, power = int(amount.to_integral_value(ROUND_UP)), 0
    while whole % 1024 == 0 and power < len(_BINARY):
        whole, power = whole // 1024, power + 1
    return f"{whole}{list(_BINARY)[power - 1] if power else ''}"


def _thousands(amount: Decimal) -> tuple[int, int]:
    """Return the number without factors of a thousand, and its power of ten: (1500, -3) for 1.5."""
    power = -9
    whole = int(amount.scaleb(9).to_integral_value(ROUND_UP))
    while whole and whole % 1000 == 0 and power < max(_SUFFIXES):
        whole, power = whole // 1000, power + 3
    return (whole, power) if whole else (0, 0)


_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_BUILT_IN = "io.k8s.api."
_UNTYPED = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
}
"""Types whose content is kept as written."""

Schemas = dict[str, Any]
"""The schemas of an API group's version by name, as in `components.schemas` of its OpenAPI document."""


class Kinds(Protocol):
    """Information about the kinds that the API server serves."""

    def schemas(self, api_version: str) -> Schemas:
        """Return the schemas of an API group's version, none if it is not served."""
        ...

    def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether objects of a kind are in namespaces.

        True for kinds that are not served (yet), as the official provider assumes.
        """
        ...


class _UnfitError(Exception):
    """A value does not have its field's type. The API server will reject it; until then the object stays as it is."""


def input_fields(kinds: Kinds, api_version: str, kind: str) -> list[str]:
    """Return the top-level fields that a program may set in objects of a built-in kind, none for any other kind."""
    schemas = kinds.schemas(api_version)
    name = _name_of(schemas, api_version, kind)
    return [field for field in schemas[name]["properties"] if field != "status"] if name else []


def normalized(kinds: Kinds, each: KubeObject) -> KubeObject:
    """Return an object as the official provider compares and sends it. Custom resources and unknown values stay as they are."""
    api_version, kind = each.get("apiVersion"), each.get("kind")
    if has_unknown(each) or not isinstance(api_version, str) or not isinstance(kind, str):
        return without_read_only(each)
    if (api_version, kind) == ("v1", "Secret"):
        each = _secret(each)
    elif kind == "CustomResourceDefinition" and api_version.startswith("apiextensions.k8s.io/"):
        each = _definition(each)
    elif name := _name_of(schemas := kinds.schemas(api_version), api_version, kind):
        try:
            each = _typed(each, {"$ref": name}, schemas)
        except (_UnfitError, NoQuantityError):
            return without_read_only(each)
    return without_read_only(each)


def _name_of(schemas: Schemas, api_version: str, kind: str) -> str | None:
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    for name, schema in schemas.items():
        if name.startswith(_BUILT_IN) and wanted in schema.get("x-kubernetes-group-version-kind", []):
            return name
    return None


def _secret(each: KubeObject) -> KubeObject:
    """Return the Secret with `stringData` as the API server stores it: in `data`, overriding existing keys."""
    written = each.get("stringData")
    given = each.get("data")
    data: dict[str, Any] = dict(given) if is_object(given) else {}
    if is_object(written) and written and all(isinstance(value, str) for _, value in written.items()):
        stored = {key: base64.b64encode(str(value).encode()).decode() for key, value in written.items()}
        return {**{key: value for key, value in each.items() if key != "stringData"}, "data": {**data, **stored}}
    return {**each, "data": {key: _normalized_base64(value) for key, value in data.items()}} if data else each


def _normalized_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64encode(base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)).decode()
    except (binascii.Error, ValueError):
        return value


def _definition(each: KubeObject) -> KubeObject:
    found = {key: value for key, value in each.items() if key != "status"}
    spec = found.get("spec")
    if is_object(spec) and spec.get("preserveUnknownFields") is False:
        found["spec"] = {key: value for key, value in spec.items() if key != "preserveUnknownFields"}
    return found


def _typed(value: Any, schema: Schemas, schemas: Schemas) -> Any:
    """Return `value` converted to the schema's type. Raises _UnfitError or NoQuantityError if it has another type."""
    name, schema = _resolved(schema, schemas)
    if name == _QUANTITY:
        return canonical(value)
    if name in _UNTYPED:
        return value
    match schema.get("type"):
        case "object" if "properties" in schema or "additionalProperties" in schema:
            return _typed_object(value, schema, schemas)
        case "array":
            if not is_list(value):
                raise _UnfitError
            return [_typed(each, schema["items"], schemas) for each in value]
        case "string" if not isinstance(value, str):
            raise _UnfitError
        case "boolean" if not isinstance(value, bool):
            raise _UnfitError
        case "integer" | "number" if isinstance(value, bool) or not isinstance(value, int | float):
            raise _UnfitError
        case _:
            return value


def _typed_object(value: Any, schema: Schemas, schemas: Schemas) -> Any:
    if not is_object(value):
        raise _UnfitError
    found: dict[str, Any] = {}
    fields: Schemas = schema.get("properties", {})
    for key, each in value.items():
        field = fields.get(key) or schema.get("additionalProperties")
        if not is_object(field):
            continue
        typed = _typed(each, field, schemas)
        if key in fields and _is_left_out(typed, field, key in schema.get("required", [])):
            continue
        found[key] = typed
    return found


def _is_left_out(value: Any, field: Schemas, is_required: bool) -> bool:  # noqa: FBT001 -- one of three facts about a field
    """Return whether JSON of the Go type omits the value: an empty list or map, but not an empty object with its own type."""
    is_container = (is_list(value) or is_object(value)) and not value
    return is_container and not is_required and ("additionalProperties" in field or field.get("type") == "array")


def _resolved(schema: Schemas, schemas: Schemas) -> tuple[str, Schemas]:
    """Return the name and schema of a reference, or "" and the schema itself if it is not a reference."""
    # A reference with its own default or description is an `allOf` of one.
    reference = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", []) if "$ref" in each), "")
    name = reference.rpartition("/")[2]
    return (name, schemas[name]) if name else ("", schema)


AUTONAMED = "pulumi.com/autonamed"
DEFAULT_NAMESPACE = "default"
DELETION_PROPAGATION = "pulumi.com/deletionPropagationPolicy"
PATCH_FIELD_MANAGER = "pulumi.com/patchFieldManager"
PATCH_FORCE = "pulumi.com/patchForce"
REPLACE_UNREADY = "pulumi.com/replaceUnready"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
WAIT_FOR = "pulumi.com/waitFor"

_MANAGED_BY = {"app.kubernetes.io/managed-by": "pulumi"}
"""A label that client-side apply sets on objects it creates."""

_READ_ONLY = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)


def type_of(urn: str) -> str:
    """Return the resource type in a URN, such as `kubernetes:apps/v1:Deployment`."""
    return urn.split("::")[2].rpartition("$")[2]


def resource_name(urn: str) -> str:
    """Return the name that the program gave a resource."""
    return urn.split("::", 3)[3]


def kind_of(urn: str, properties: KubeObject) -> tuple[str, str]:
    """Return the apiVersion and kind of the properties, else those of the type, in which the group `core` is empty."""
    _, api_version, kind = type_of(urn).split(":")
    given_version, given_kind = properties.get("apiVersion"), properties.get("kind")
    if isinstance(given_version, str) and isinstance(given_kind, str):
        api_version, kind = given_version, given_kind
    return api_version.removeprefix("core/"), kind


def metadata(each: KubeObject) -> dict[str, Any]:
    """Return the object's metadata, empty if there is none or it is not known yet."""
    found = each.get("metadata")
    return found if is_object(found) else {}


def name_of(each: KubeObject) -> str:
    """Return the object's name, "" if it has none or it is not known yet."""
    found = metadata(each).get("name")
    return found if isinstance(found, str) else ""


def namespace_of(each: KubeObject) -> str:
    """Return the object's namespace, "" if it has none or it is not known yet."""
    found = metadata(each).get("namespace")
    return found if isinstance(found, str) else ""


def annotation(each: KubeObject, name: str) -> str:
    """Return an annotation's value, "" if it is not set."""
    found = metadata(each).get("annotations")
    value = found.get(name) if is_object(found) else None
    return value if isinstance(value, str) else ""


def is_true(each: KubeObject, name: str) -> bool:
    """Return whether an annotation is `true`."""
    return annotation(each, name) == "true"


def is_named(each: KubeObject) -> bool:
    """Return whether the object has a name, or one that is not known yet."""
    return bool(name_of(each)) or metadata(each).get("name") is UNKNOWN


def object_id(each: KubeObject) -> str:
    """Return the object's ID in Pulumi: `namespace/name`, or `name` without a namespace."""
    return "/".join(part for part in (namespace_of(each), name_of(each)) if part)


def split_id(identity: str) -> tuple[str, str]:
    """Return the namespace ("" for none) and the name in an ID."""
    namespace, _, name = identity.rpartition("/")
    return namespace, name


def with_managed_by(each: KubeObject, old: KubeObject) -> KubeObject:
    """Return `each` with the label of client-side apply if the object had it before: objects created that way keep it."""
    had = metadata(old).get("labels")
    if not is_object(had) or not _MANAGED_BY.items() <= had.items():
        return each
    labels = metadata(each).get("labels")
    return {**each, "metadata": {**metadata(each), "labels": {**(labels if is_object(labels) else {}), **_MANAGED_BY}}}


def described(each: KubeObject) -> str:
    """Return the object's name for messages, such as `apps/v1/Deployment team-a/web`."""
    return f"{each.get('apiVersion', '')}/{each.get('kind', '')} {object_id(each)}".strip()


def without_read_only(each: KubeObject) -> KubeObject:
    """Return the object without the metadata that only the API server writes."""
    if not is_object(each.get("metadata")):
        return each
    return {**each, "metadata": {key: value for key, value in metadata(each).items() if key not in _READ_ONLY}}


def pruned(live: Any, shape: Any) -> Any:
    """Return the parts of `live` that are also in `shape`: the fields that a program set, with their current values.

    Lists are matched by position and cut to the length in `shape`, as the real provider does: an element that another writer appended to a
    list is no drift.
    """
    if is_object(live) and is_object(shape):
        return {key: pruned(value, shape[key]) for key, value in live.items() if key in shape}
    if is_list(live) and is_list(shape):
        return [pruned(value, wanted) for value, wanted in zip(live, shape, strict=False)]
    return live


_RANDOM_CHARACTERS = 8
_AUTONAMING: Any = provider_pb2.CheckRequest.AutonamingOptions


class NoNameError(Exception):
    """The object has no name and must not be given one."""


def unique_name(prefix: str, seed: bytes) -> str:
    """Return `prefix` and eight hexadecimal characters: the same ones for the same seed, random ones for an empty seed."""
    if not seed:
        return prefix + secrets.token_hex(_RANDOM_CHARACTERS // 2)
    return prefix + hashlib.sha256(seed + prefix.encode()).hexdigest()[:_RANDOM_CHARACTERS]


def autonamed(each: KubeObject, logical_name: str, seed: bytes, wish: Any = None) -> KubeObject:
    """Return `each`, named after the resource if it has neither a name nor a generateName, and marked as named by Pulumi.

    `wish` is the engine's AutonamingOptions, from the `pulumi:autonaming` setting of a project. Raises NoNameError if that forbids
    generated names.
    """
    if is_named(each) or metadata(each).get("generateName") or each.get("metadata") not in (None, metadata(each)):
        return each
    name = unique_name(f"{logical_name}-", seed)
    if wish is not None:
        if wish.mode == _AUTONAMING.DISABLE:
            raise NoNameError("autonaming is switched off for this resource, so metadata.name must be set")
        name = wish.proposed_name or name
    return _named(each, name)


def with_old_autoname(each: KubeObject, old: KubeObject) -> KubeObject:
    """Return `each` with the name that Pulumi gave it before, if it did and the program still sets none."""
    if not is_named(each) and not metadata(each).get("generateName") and is_true(old, AUTONAMED):
        return _named(each, name_of(old))
    return each


def _named(each: KubeObject, name: str) -> KubeObject:
    annotations = metadata(each).get("annotations")
    marked: dict[str, Any] = {**(annotations if is_object(annotations) else {}), AUTONAMED: "true"}
    return {**each, "metadata": {**metadata(each), "name": name, "annotations": marked}}
