"""References between files, and objects that are only parts: patches, assertions of tests, excerpts in pages."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.catalog.node_labels import QUEUE_LABEL
from flexspot.policies.inventory.pod_gpus import POD_MAKERS
from flexspot.policies.inventory.reading.source import pod_places
from flexspot.policies.values.field import Field, list_of, mapping_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Include:
    """The files and folders that a file includes."""

    folder: str
    """The file's folder, to which `paths` are relative."""
    paths: tuple[str, ...]
    from_root: bool = False
    """True if paths are relative to the repository's root, as in Flux and Argo CD. Then everything below `folder` is included, too."""


_INCLUDE_FIELDS: Final = ("resources", "bases", "components", "crds")
"""https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/"""


def includes_of(path: str, value: dict[str, Any]) -> Include | None:
    """Return the includes of a kustomization, a Kustomization of Flux, or an Application of Argo CD. None for other objects."""
    folder = posixpath.dirname(path)
    if is_kustomization(path, value):
        listed = (each for key in _INCLUDE_FIELDS for each in list_of(value.get(key)))
        return Include(folder, tuple(each for each in listed if isinstance(each, str)))
    group = str(value.get("apiVersion")).partition("/")[0]
    spec = mapping_of(value.get("spec"))
    if (group, value.get("kind")) == ("kustomize.toolkit.fluxcd.io", "Kustomization"):
        paths = [spec.get("path")]
    elif (group, value.get("kind")) == ("argoproj.io", "Application"):
        paths = [mapping_of(each).get("path") for each in (spec.get("source"), *list_of(spec.get("sources")))]
    else:
        return None
    return Include(folder, tuple(each for each in paths if isinstance(each, str)), from_root=True)


KUSTOMIZATION_FILES: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
"""https://github.com/kubernetes-sigs/kustomize, api/konfig/general.go (2026-11-25)."""

_OWN_FIELDS: Final = frozenset(
    (
        *_INCLUDE_FIELDS,
        "patches",
        "patchesStrategicMerge",
        "patchesJson6902",
        "configMapGenerator",
        "secretGenerator",
        "generators",
        "transformers",
    )
)


def is_kustomization(path: str, value: dict[str, Any]) -> bool:
    """Return whether it is a kustomize file: by its kind, or by its name, because kustomize does not require a kind."""
    if value.get("kind") in {"Kustomization", "Component"}:
        return str(value.get("apiVersion", "kustomize.config.k8s.io/")).startswith("kustomize.config.k8s.io/")
    return "kind" not in value and posixpath.basename(path) in KUSTOMIZATION_FILES and not _OWN_FIELDS.isdisjoint(value)


class Includes:
    """The includes of all folders."""

    def __init__(self, includes: Iterable[Include], files: set[str]) -> None:
        self._files = files
        self._below = _below(files)
        self._of: dict[str, list[Include]] = defaultdict(list)
        for each in includes:
            self._of[each.folder].append(each)
        self._targets = {
            folder: {_target(each, path, self._below) for each in listed for path in each.paths} for folder, listed in self._of.items()
        }

    @property
    def folders(self) -> Iterable[str]:
        """Folders that include anything."""
        return self._of

    @property
    def roots(self) -> list[str]:
        """Folders that no other folder includes."""
        taken = {target for folder, targets in self._targets.items() for target in targets if target != folder}
        return sorted(folder for folder in self._of if folder not in taken)

    def files_of(self, folder: str) -> frozenset[str]:
        """Return the files that a folder includes, directly or through others."""
        found = set[str]()
        if any(each.from_root for each in self._of[folder]):
            found.update(self._below.get(folder, ()))
        waiting, seen = [folder], {folder}
        while waiting:
            here = waiting.pop()
            if here in self._files:
                found.add(here)
            elif here in self._of:
                new = self._targets[here] - seen
                seen |= new
                waiting += new
            else:
                found.update(self._below.get(here, ()))
        return frozenset(found)


def _target(include: Include, path: str, below: Mapping[str, Sequence[str]]) -> str:
    """Return the target of an included path.

    The repository's root is not known, so a path from it is looked up below the nearest parent folder.
    """
    if not include.from_root:
        return _normal(posixpath.join(include.folder, path))
    above = include.folder
    while above and posixpath.dirname(above) != above:
        above = posixpath.dirname(above)
        if (target := _normal(posixpath.join(above, path.lstrip("/")))) in below:
            return target
    return _normal(path.lstrip("/"))


def _normal(path: str) -> str:
    normal = posixpath.normpath(path)
    return "" if normal == "." else normal


def _below(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the files below each folder."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in files:
        folder = posixpath.dirname(path)
        while True:
            found[folder].append(path)
            if posixpath.dirname(folder) == folder:
                break
            folder = posixpath.dirname(folder)
    return found


def refers_to(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the objects that an object refers to, for kinds that rules look up by name."""
    spec, metadata = mapping_of(value.get("spec")), mapping_of(value.get("metadata"))
    named: list[tuple[str, Any]] = [("LocalQueue", mapping_of(metadata.get("labels")).get(QUEUE_LABEL))]
    if value.get("kind") == "LocalQueue":
        named.append(("ClusterQueue", spec.get("clusterQueue")))
    if value.get("kind") == "NodePool":
        reference = mapping_of(mapping_of(mapping_of(spec.get("template")).get("spec")).get("nodeClassRef"))
        named.append((str(reference.get("kind")), reference.get("name")))
    for group in list_of(spec.get("resourceGroups")):
        named += [("ResourceFlavor", mapping_of(flavor).get("name")) for flavor in list_of(mapping_of(group).get("flavors"))]
    yield from ((kind, name) for kind, name in named if isinstance(name, str))


_PATCHES: Final = ("patches", "patchesStrategicMerge", "patchesJson6902")


def patch_files(path: str, value: dict[str, Any]) -> Iterator[str]:
    """Yield the files that a kustomization uses as patches: parts of objects, whose missing fields mean nothing."""
    if not is_kustomization(path, value):
        return
    for patches in _PATCHES:
        for each in list_of(value.get(patches)):
            file = mapping_of(each).get("path") if isinstance(each, dict) else each
            # An entry of patchesStrategicMerge may also be an inline patch.
            if isinstance(file, str) and "\n" not in file:
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), file))


_COMPARED: Final = ("assert", "error", "errors", "delete", "patch")
"""Operations of Chainsaw whose files are not whole objects. https://kyverno.github.io/chainsaw/latest/operations/ (2026-11-25)."""


def compared_files(path: str, value: dict[str, Any]) -> Iterator[str]:
    """Yield the files that a test of Chainsaw or KUTTL compares with a cluster, as written. They may be patterns."""
    if str(value.get("apiVersion")).partition("/")[0] not in {"chainsaw.kyverno.io", "kuttl.dev"}:
        return
    for fields in _mappings_in(value):
        for key, below in fields.items():
            files = [below.get("file")] if isinstance(below, dict) else below
            if key in _COMPARED and isinstance(files, list):
                named = (file for file in files if isinstance(file, str))
                yield from (posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) for file in named)


def _mappings_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all mappings in a document, at any depth."""
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting += each.values()
        waiting += list_of(each)


_ASSERTION_FILE: Final = re.compile(r"^\d{2,}-errors?(?![a-z])|(?:^|[-_.])assert(?:ions?|s)?(?![a-z])|^chainsaw-errors?$")
"""Names of assertion files in KUTTL and Chainsaw: 00-assert.yaml, 01-errors.yaml, chainsaw-assert.yaml.

Sources: kudobuilder/kuttl, docs/testing/steps.md; https://kyverno.github.io/chainsaw/latest/test/spec/ (2026-11-25).
"""


def is_assertion_file(path: str) -> bool:
    """Return whether the file's name is that of an assertion, which a test compares with a cluster."""
    stem, ending = posixpath.splitext(posixpath.basename(path).lower())
    return ending in {".yaml", ".yml"} and _ASSERTION_FILE.search(stem) is not None


PATCH_MARKS: Final = (b"$patch", b"$retainKeys", b"$setElementOrder/", b"$deleteFromPrimitiveList/")
"""https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md"""

_MARK_TEXTS: Final = tuple(mark.decode() for mark in PATCH_MARKS)


def is_patch(value: dict[str, Any]) -> bool:
    """Return whether one of its keys is a directive for merging it into another object."""
    return any(key.startswith(_MARK_TEXTS) for fields in _mappings_in(value) for key in fields)


_NEEDED: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): ("spec.podSets",),
    ("cloud.google.com", "ComputeClass"): ("spec.priorities",),
    ("karpenter.k8s.aws", "EC2NodeClass"): ("spec.securityGroupSelectorTerms", "spec.subnetSelectorTerms"),
    ("karpenter.sh", "NodePool"): ("spec.template.spec.nodeClassRef", "spec.template.spec.requirements"),
    ("kueue.x-k8s.io", "ClusterQueue"): ("spec.resourceGroups",),
    ("kueue.x-k8s.io", "LocalQueue"): ("spec.clusterQueue",),
    ("", "PersistentVolumeClaim"): ("spec.accessModes", "spec.resources"),
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "ReplicaSet"): ("spec.selector",),
    ("apps", "StatefulSet"): ("spec.selector",),
    ("policy", "PodDisruptionBudget"): ("spec.selector",),
}
"""Fields that the API server requires for a kind, or without which objects of the kind have no use.

From the definitions of Karpenter 1.14.1 and its provider for AWS, and the required fields of Kubernetes 1.36 by api-conventions.
`resourceGroups` is not required, but a queue without it gives nothing.
"""


_ONE_NEEDED: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("karpenter.sh", "Provisioner"): ("spec.provider", "spec.providerRef"),
}
"""Fields of which one is required: karpenter.sh/v0.31/concepts/provisioners (2026-11-26)."""


def is_fragment(value: dict[str, Any]) -> bool:
    """Return whether an object lacks a required field, so that it is an excerpt. Pages show, for example, only the limits of a NodePool."""
    group = str(value.get("apiVersion")).rpartition("/")[0]
    kind = (group, str(value.get("kind")))
    if _missing(value, "metadata.name") and _missing(value, "metadata.generateName"):
        return True
    if any(_missing(value, path) for path in _NEEDED.get(kind, ())):
        return True
    if kind in _ONE_NEEDED and all(_missing(value, path) for path in _ONE_NEEDED[kind]):
        return True
    maker = POD_MAKERS.get(kind)
    pods = [pod for path in maker.paths for _, pod, _, _ in pod_places(Field(value), path.split("."))] if maker else []
    return maker is not None and not any(_has_images(list_of(pod.at("containers").value)) for pod in pods)


def _missing(value: Any, path: str) -> bool:
    for step in path.split("."):
        value = mapping_of(value).get(step)
    return value is None or value in ([], {})


def _has_images(containers: list[Any]) -> bool:
    return bool(containers) and all(isinstance(each, dict) and "image" in each for each in containers)
