"""The Kubernetes provider's steps before any change: names and defaults (Check), and differences (Diff)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pulumi.runtime.proto import provider_pb2

from flexspot.capacity.values import json_differences
from flexspot.capacity.values.json_differences import ABSENT, Path, same, written_path
from flexspot.lab.providers.objects import (
    AUTONAMED,
    DEFAULT_NAMESPACE,
    PATCH_FIELD_MANAGER,
    REPLACE_UNREADY,
    Kinds,
    annotation,
    autonamed,
    is_named,
    is_true,
    kind_of,
    metadata,
    name_of,
    namespace_of,
    normalized,
    resource_name,
    type_of,
    with_managed_by,
    with_old_autoname,
)
from flexspot.lab.providers.serving import ProviderError
from flexspot.lab.providers.values import UNKNOWN, Properties, Secret, has_secret, hyphenated, is_list, is_object, plain, underscored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from flexspot.lab.cluster import KubeObject


@dataclass(frozen=True)
class ProviderSettings:
    """The settings that the stand-in supports, with the official provider's defaults."""

    namespace: str = ""
    """Namespace of namespaced objects that set none; "" for `default`."""

    config_maps_mutable: bool = False
    """Change the data of ConfigMaps in place instead of replacing them."""

    secrets_mutable: bool = False
    """Change the data of Secrets in place instead of replacing them."""

    upsert: bool = False
    """Take over an existing object on creation."""

    patch_force: bool = False
    """Take over every field from other managers."""


_POD_SPEC = (
    "affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostNetwork hostPID hostname"
    " imagePullSecrets nodeName nodeSelector overhead preemptionPolicy priority priorityClassName readinessGates restartPolicy"
    " runtimeClassName schedulerName securityContext serviceAccount serviceAccountName shareProcessNamespace subdomain"
    " terminationGracePeriodSeconds volumes"
)
_CONTAINER = (
    "args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources securityContext stdin stdinOnce"
    " terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
_VOLUME = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs hostPath iscsi local"
    " nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
)

_FIELDS: dict[str, tuple[str, ...]] = {
    "apps/v1/DaemonSet": ("spec.selector",),
    "apps/v1/Deployment": ("spec.selector",),
    "apps/v1/StatefulSet": tuple(
        f"spec.{field}" for field in ("podManagementPolicy", "revisionHistoryLimit", "selector", "serviceName", "volumeClaimTemplates")
    ),
    "batch/v1/Job": ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    "policy/v1beta1/PodDisruptionBudget": ("spec",),
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": ("roleRef",),
    "rbac.authorization.k8s.io/v1/RoleBinding": ("roleRef",),
    "storage.k8s.io/v1/StorageClass": ("parameters", "provisioner"),
    "v1/PersistentVolume": tuple(f"spec.{field}" for field in _VOLUME.split()),
    "v1/PersistentVolumeClaim": ("spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"),
    "v1/Pod": (
        *(f"spec.{field}" for field in _POD_SPEC.split()),
        *(f"spec.{containers}.*.{field}" for containers in ("containers", "initContainers") for field in _CONTAINER.split()),
    ),
    "v1/ResourceQuota": ("spec.scopes",),
    "v1/Service": ("spec.clusterIP",),
}


def replacing_fields(each: KubeObject, settings: ProviderSettings) -> list[tuple[str, ...]]:
    """Return the fields of an object of this kind that cannot change in place, each as its keys, `*` for any element of a list."""
    kind = f"{each.get('apiVersion', '')}/{each.get('kind', '')}"
    fields = ["metadata.name", "metadata.namespace", *_FIELDS.get(kind, ())]
    if kind == "v1/Secret":
        fields.append("type")
        if not settings.secrets_mutable or each.get("immutable") is True:
            fields += ["stringData", "data"]
    if kind == "v1/ConfigMap" and (not settings.config_maps_mutable or each.get("immutable") is True):
        fields += ["binaryData", "data"]
    return [tuple(field.split(".")) for field in fields]


def replaces(path: Path, value: Any, fields: Sequence[tuple[str, ...]]) -> bool:
    """Return whether setting `value` at `path` affects one of `fields`: it is at or in the field, or contains it."""
    return any(_touches(path, value, field) for field in fields)


def _touches(path: Path, value: Any, field: tuple[str, ...]) -> bool:
    keys = [key if isinstance(key, str) else "*" for key in path]
    if len(keys) >= len(field):
        return keys[: len(field)] == list(field)
    return keys == list(field[: len(keys)]) and _contains(value, field[len(keys) :])


def _contains(value: Any, field: tuple[str, ...]) -> bool:
    if not field:
        return True
    if field[0] == "*":
        return is_list(value) and any(_contains(each, field[1:]) for each in value)
    return is_object(value) and field[0] in value and _contains(value[field[0]], field[1:])


class ChangeKind(StrEnum):
    """Kind of a change. ADD and DELETE are of a field or an element; UPDATE is of a value, also to a value that is not known yet."""

    ADD = "ADD"
    DELETE = "DELETE"
    UPDATE = "UPDATE"


@dataclass(frozen=True)
class Difference:
    """A difference in one property. `replaces` is true if the object must be replaced for it."""

    path: Path
    change: ChangeKind
    replaces: bool

    @property
    def written(self) -> str:
        """The path in Pulumi's format, such as `spec.containers[0].image` or `metadata.labels["app.kubernetes.io/name"]`."""
        return written_path(self.path)


def differences(old: Any, new: Any, replacing: Sequence[tuple[str, ...]] = ()) -> list[Difference]:
    """Return the properties in which `new` differs from `old`. Lists are compared by position."""
    return [
        Difference(path, _change(before, after), replaces(path, None if after is ABSENT else after, replacing))
        for path, before, after in json_differences.differences(old, new, _alike)
    ]


def _change(old: Any, new: Any) -> ChangeKind:
    if new is ABSENT:
        return ChangeKind.DELETE
    return ChangeKind.ADD if old is ABSENT else ChangeKind.UPDATE


def _alike(old: Any, new: Any) -> bool:
    # An unknown value may become anything.
    return new is not UNKNOWN and same(old, new)


def not_ignored(found: Iterable[Difference], ignored: Iterable[str]) -> list[Difference]:
    """Return `found` without differences at or in one of the paths of the resource option `ignore_changes`."""
    prefixes = list(ignored)
    return [each for each in found if not any(_is_in(each.written, prefix) for prefix in prefixes)]


def _is_in(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))


def top_level(found: Iterable[Difference]) -> list[str]:
    """Return the top-level properties in which something differs, once each."""
    return list(dict.fromkeys(str(each.path[0]) for each in found))


def diff_answer(
    found: Sequence[Difference],
    *,
    replaces: Sequence[str],
    diffs: Sequence[str] = (),
    delete_before_replace: bool = False,
    of_inputs: Callable[[Difference], bool] = lambda _: True,
) -> Any:
    """Return the engine's message. `of_inputs` selects differences for which it shows the inputs' values instead of the outputs'."""
    kinds: Any = provider_pb2.PropertyDiff.Kind
    response: Any = provider_pb2.DiffResponse
    return response(
        changes=response.DIFF_SOME if found or replaces else response.DIFF_NONE,
        diffs=diffs,
        replaces=replaces,
        deleteBeforeReplace=delete_before_replace,
        detailedDiff={
            each.written: provider_pb2.PropertyDiff(
                kind=kinds.Value(each.change + ("_REPLACE" if each.replaces else "")), inputDiff=of_inputs(each)
            )
            for each in found
        },
        hasDetailedDiff=True,
    )


@dataclass(frozen=True)
class DiffVerdict:
    """The answer to Diff. `replaces` are the properties for which the object must be replaced."""

    found: list[Difference]
    replaces: list[str]
    delete_before_replace: bool

    def answer(self) -> Any:
        """Return the engine's message. Omits the names of whole properties (`diffs`), as the official provider does."""
        return diff_answer(
            self.found,
            replaces=self.replaces,
            delete_before_replace=self.delete_before_replace,
            # A removed property is not in the outputs, so the engine could not show it.
            of_inputs=lambda each: each.change is ChangeKind.DELETE,
        )


def require_offered(urn: str) -> None:
    """Raise ProviderError for the resource types that the stand-in does not support."""
    token = type_of(urn)
    if token == "kubernetes:helm.sh/v3:Release":  # noqa: S105 -- a type token
        raise ProviderError(
            f"{token} is not offered by the stand-in Kubernetes provider: the lab has no charts and no images. For `cloud: local`, "
            "declare the chart's objects, or substitutes for them; declare the chart for clouds only."
        )
    group = token.split(":")[1].rpartition("/")[0]
    if "." in group and not group.endswith(".k8s.io"):
        return
    if token.endswith("Patch"):
        raise ProviderError(f"{token} is not offered by the stand-in Kubernetes provider; declare the whole object instead.")
    if token.endswith("List"):
        raise ProviderError(f"{token} cannot be created: lists are for manifests. Declare each object of it by itself.")


def check(  # noqa: PLR0913 -- what the engine asks with
    kinds: Kinds, settings: ProviderSettings, urn: str, olds: Properties, news: Properties, *, seed: bytes, wish: Any = None
) -> Properties:
    """Return the inputs that all later steps use: the program's in their normal form, with a name and a namespace."""
    require_offered(urn)
    inputs: KubeObject = hyphenated(plain(news))
    inputs["apiVersion"], inputs["kind"] = kind_of(urn, inputs)
    inputs = normalized(kinds, inputs)
    old: KubeObject = hyphenated(plain(olds))
    inputs = with_managed_by(with_old_autoname(inputs, old), old) if old else autonamed(inputs, resource_name(urn), seed, wish)
    if not metadata(inputs).get("namespace") and kinds.is_namespaced(inputs["apiVersion"], inputs["kind"]):
        inputs["metadata"] = {**metadata(inputs), "namespace": settings.namespace or DEFAULT_NAMESPACE}
    return with_secrets(underscored(inputs), news)


def diff(  # noqa: PLR0913 -- what the engine asks with
    kinds: Kinds,
    settings: ProviderSettings,
    *,
    state: Properties,
    old_inputs: Properties,
    news: Properties,
    ignored: Sequence[str],
    is_unready: Callable[[KubeObject], bool] = lambda _: False,
) -> DiffVerdict:
    """Return the changes of an update: the inputs in the state against the new ones. The cluster is not read.

    `is_unready` returns whether a live Job has not completed, for the annotation pulumi.com/replaceUnready.
    """
    new = normalized(kinds, hyphenated(plain(news)))
    old = normalized(kinds, inputs_in(state, old_inputs))
    live = live_part(state)
    old, new = _in_a_namespace(kinds, old, new), _in_a_namespace(kinds, new, new)
    for key in ("apiVersion", "kind"):
        old.setdefault(key, new[key])
    if name_of(new) and name_of(live):
        # A generated name that is now set explicitly is the same name.
        old["metadata"]["name"] = name_of(live)
    found = not_ignored(differences(old, new, replacing_fields(new, settings)), ignored)
    replaces = [each.written for each in found if each.replaces]
    if new["kind"] == "Job" and is_true(new, REPLACE_UNREADY) and is_unready(live):
        replaces.append(f'.metadata.annotations["{REPLACE_UNREADY}"]')
    same_place = name_of(new) == name_of(live) and namespace_of(new) == namespace_of(_in_a_namespace(kinds, live, new))
    return DiffVerdict(found, replaces, bool(replaces) and is_named(new) and not is_true(new, AUTONAMED) and same_place)


def _in_a_namespace(kinds: Kinds, each: KubeObject, new: KubeObject) -> KubeObject:
    """Return `each` in the namespace `default` if it has none, and without a namespace if its kind is not namespaced."""
    found = dict(metadata(each))
    if kinds.is_namespaced(new["apiVersion"], new["kind"]):
        found["namespace"] = found.get("namespace") or DEFAULT_NAMESPACE
    else:
        found.pop("namespace", None)
    return {**each, "metadata": found}


FIELD_MANAGER = "__fieldManager"
INITIAL_API_VERSION = "__initialApiVersion"
INPUTS = "__inputs"

SHARED_FIELD_MANAGER = "pulumi-kubernetes"
"""Field manager of a Create, and of all objects created with client-side apply."""


def recorded(live: KubeObject, inputs: KubeObject, given: Properties, initial_api_version: str, manager: str) -> Properties:
    """Return the outputs of a resource. Values that are secret in the engine's inputs are secret here."""
    outputs = with_secrets(underscored(live), given)
    string_data = given.get("stringData")
    data = outputs.get("data")
    if has_secret(string_data) and data is not None and not isinstance(data, Secret):
        outputs["data"] = Secret(data)
    own = {INPUTS: with_secrets(underscored(inputs), given), INITIAL_API_VERSION: initial_api_version, FIELD_MANAGER: manager}
    return {**outputs, **own}


def live_part(state: Properties) -> KubeObject:
    """Return the object in the outputs of a resource, as it was when they were recorded."""
    return {key: value for key, value in hyphenated(plain(state)).items() if key not in {FIELD_MANAGER, INITIAL_API_VERSION, INPUTS}}


def inputs_in(state: Properties, old_inputs: Properties) -> KubeObject:
    """Return the current inputs: the engine's.

    The state's own differ after a failed update: they are the attempted ones. They are used if the engine sends none.
    """
    found: KubeObject = hyphenated(plain(old_inputs)) or hyphenated(plain(state.get(INPUTS))) or {}
    return found


def field_manager(state: Properties, inputs: KubeObject) -> str:
    """Return the field manager of a resource: from its annotation, else its previous one, else a new one."""
    known: str = annotation(inputs, PATCH_FIELD_MANAGER) or plain(state.get(FIELD_MANAGER, ""))
    return known or f"{SHARED_FIELD_MANAGER}-{secrets.token_hex(4)}"


def initial_api_version(state: Properties, inputs: KubeObject) -> str:
    """Return the apiVersion with which the resource was created."""
    return plain(state.get(INITIAL_API_VERSION)) or inputs.get("apiVersion", "")


def with_secrets(outputs: Any, inputs: Any) -> Properties:
    """Return `outputs` with each value marked as secret that is secret in `inputs`. The data of a Secret is always marked.

    If a list of the inputs contains a secret, the whole list is secret: the server may have reordered it.
    """
    found: Properties = dict(outputs)
    if found.get("kind") == "Secret":
        for key in ("data", "stringData"):
            if key in found and not isinstance(found[key], Secret):
                found[key] = Secret(found[key])
        return found
    given: Properties = inputs
    for key, value in given.items():
        if key not in found or isinstance(found[key], Secret):
            continue
        if is_object(found[key]) and is_object(value):
            found[key] = with_secrets(found[key], value)
        elif has_secret(value):
            found[key] = Secret(found[key])
    return found
