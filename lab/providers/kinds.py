"""The fields of Kubernetes' built-in kinds, and objects and quantities in the form that the API server gives back."""

from __future__ import annotations

import base64
import binascii
import re
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any, Protocol

from lab.providers.objects import without_read_only
from lab.providers.values import has_unknown, is_list, is_object

if TYPE_CHECKING:
    from lab.cluster import KubeObject


_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}

_WRITTEN = re.compile(r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,3}))?")

_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}


class NoQuantityError(ValueError):
    """The API server would not take it as a quantity."""


def canonical(written: str | float) -> str:
    """The spelling that the API server gives a quantity. Raises NoQuantityError."""
    match = _WRITTEN.fullmatch(str(written))
    if match is None or isinstance(written, bool):
        raise NoQuantityError(f"{written!r} is no quantity")
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
    """The whole number without a factor of a thousand, and the power of ten that goes with it: (1500, -3) for 1.5."""
    power = -9
    whole = int(amount.scaleb(9).to_integral_value(ROUND_UP))
    while whole and whole % 1000 == 0 and power < max(_SUFFIXES):
        whole, power = whole // 1000, power + 3
    return (whole, power) if whole else (0, 0)


_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_BUILT_IN = "io.k8s.api."
_ANY_OF_ITS_OWN = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
}
"""Types whose content is whatever was written."""

Schemas = dict[str, Any]
"""The schemas of an API group's version by name, as in `components.schemas` of its OpenAPI document."""


class Kinds(Protocol):
    """What is known of the kinds that the API server has."""

    def schemas(self, api_version: str) -> Schemas:
        """The schemas of an API group's version, none when it is not served."""
        ...

    def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Whether objects of a kind are in namespaces; yes of kinds that are not served (yet), as the official provider assumes."""
        ...


class _UnfitError(Exception):
    """A value is not of its field's type. The API server will say so; until then the object stays as it is."""


def is_built_in(kinds: Kinds, api_version: str, kind: str) -> bool:
    """Whether a kind is one of Kubernetes itself, and no custom resource."""
    return _name_of(kinds.schemas(api_version), api_version, kind) is not None


def input_fields(kinds: Kinds, api_version: str, kind: str) -> list[str]:
    """The top-level fields that a program may set in objects of a built-in kind; none of any other kind."""
    schemas = kinds.schemas(api_version)
    name = _name_of(schemas, api_version, kind)
    return [field for field in schemas[name]["properties"] if field != "status"] if name else []


def normalized(kinds: Kinds, each: KubeObject) -> KubeObject:
    """An object as the official provider compares and sends it; custom resources, and what is not known yet, stay as they are."""
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
    """`stringData` as the API server stores it: in `data`, over what is there."""
    written = each.get("stringData")
    given = each.get("data")
    data: dict[str, Any] = dict(given) if is_object(given) else {}
    if is_object(written) and written and all(isinstance(value, str) for _, value in written.items()):
        stored = {key: base64.b64encode(str(value).encode()).decode() for key, value in written.items()}
        return {**{key: value for key, value in each.items() if key != "stringData"}, "data": {**data, **stored}}
    return {**each, "data": {key: _without_line_breaks(value) for key, value in data.items()}} if data else each


def _without_line_breaks(value: Any) -> Any:
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
    """`value` as a value of the schema's type; raises _UnfitError or NoQuantityError when it is none."""
    name, schema = _resolved(schema, schemas)
    if name == _QUANTITY:
        return canonical(value)
    if name in _ANY_OF_ITS_OWN:
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
    """Whether JSON of the Go type lacks the value: an empty list or map, but not an empty object of a type of its own."""
    is_container = (is_list(value) or is_object(value)) and not value
    return is_container and not is_required and ("additionalProperties" in field or field.get("type") == "array")


def _resolved(schema: Schemas, schemas: Schemas) -> tuple[str, Schemas]:
    """The name and the schema that a reference leads to; "" and the schema itself when it is none."""
    # A reference with a default or a description of its own is an `allOf` of one.
    reference = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", []) if "$ref" in each), "")
    name = reference.rpartition("/")[2]
    return (name, schemas[name]) if name else ("", schema)
