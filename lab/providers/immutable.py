"""The fields whose change makes the Kubernetes provider replace an object instead of changing it.

The real provider decides by a list, not by asking the API server: a change of an immutable field that is not in the list is
an update, which the API server then refuses. The list below is pulumi-kubernetes 4's (provider/pkg/provider/diff.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.values.json_differences import Path
    from lab.cluster import KubeObject
    from lab.providers.settings import Settings

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


def replacing_fields(each: KubeObject, settings: Settings) -> list[tuple[str, ...]]:
    """The fields of an object of this kind that cannot change in place, each as its keys, `*` for any element of a list."""
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
    """Whether setting `value` at `path` touches one of `fields`: it is at or in the field, or holds it."""
    return any(_touches(path, value, field) for field in fields)


def _touches(path: Path, value: Any, field: tuple[str, ...]) -> bool:
    keys = [key if isinstance(key, str) else "*" for key in path]
    if len(keys) >= len(field):
        return keys[: len(field)] == list(field)
    return keys == list(field[: len(keys)]) and _holds(value, field[len(keys) :])


def _holds(value: Any, field: tuple[str, ...]) -> bool:
    if not field:
        return True
    if field[0] == "*":
        return is_list(value) and any(_holds(each, field[1:]) for each in value)
    return is_object(value) and field[0] in value and _holds(value[field[0]], field[1:])
