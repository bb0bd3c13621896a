"""What leads from one file to others: what a kustomization or a tool of GitOps takes, and names by which objects refer to one another."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from capacity.catalog.work_labels import QUEUE_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Taking:
    """The files and folders that a file takes. `folder` is the file's own, to which `paths` are relative.

    `from_root`: they are relative to the repository's root, as Flux and Argo CD have them, and so is everything below `folder` taken.
    """

    folder: str
    paths: tuple[str, ...]
    from_root: bool = False


_TAKES: Final = ("resources", "bases", "components", "crds")
"""https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/"""


def taking_of(path: str, value: dict[str, Any]) -> Taking | None:
    """What an object takes: a kustomization, a Kustomization of Flux, an Application of Argo CD; None for any other."""
    folder = posixpath.dirname(path)
    if is_kustomization(path, value):
        listed = (each for key in _TAKES for each in _list(value.get(key)))
        return Taking(folder, tuple(each for each in listed if isinstance(each, str)))
    group = str(value.get("apiVersion")).partition("/")[0]
    spec = _mapping(value.get("spec"))
    if (group, value.get("kind")) == ("kustomize.toolkit.fluxcd.io", "Kustomization"):
        paths = [spec.get("path")]
    elif (group, value.get("kind")) == ("argoproj.io", "Application"):
        paths = [_mapping(each).get("path") for each in (spec.get("source"), *_list(spec.get("sources")))]
    else:
        return None
    return Taking(folder, tuple(each for each in paths if isinstance(each, str)), from_root=True)


KUSTOMIZATION_FILES: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
"""https://github.com/kubernetes-sigs/kustomize, api/konfig/general.go (2026-11-25)."""

_OWN_FIELDS: Final = frozenset(
    (*_TAKES, "patches", "patchesStrategicMerge", "patchesJson6902", "configMapGenerator", "secretGenerator", "generators", "transformers")
)


def is_kustomization(path: str, value: dict[str, Any]) -> bool:
    """Whether it is a file of kustomize's: by its kind, or by its name, since kustomize asks for no kind."""
    if value.get("kind") in {"Kustomization", "Component"}:
        return str(value.get("apiVersion", "kustomize.config.k8s.io/")).startswith("kustomize.config.k8s.io/")
    return "kind" not in value and posixpath.basename(path) in KUSTOMIZATION_FILES and not _OWN_FIELDS.isdisjoint(value)


class Takings:
    """What folders take, of all that there is."""

    def __init__(self, takings: Iterable[Taking], files: set[str]) -> None:
        self._files = files
        self._below = _below(files)
        self._of: dict[str, list[Taking]] = defaultdict(list)
        for each in takings:
            self._of[each.folder].append(each)
        self._targets = {
            folder: {_target(each, path, self._below) for each in listed for path in each.paths} for folder, listed in self._of.items()
        }

    @property
    def folders(self) -> Iterable[str]:
        """The folders that take anything."""
        return self._of

    @property
    def roots(self) -> list[str]:
        """Those of them that no other takes."""
        taken = {target for folder, targets in self._targets.items() for target in targets if target != folder}
        return sorted(folder for folder in self._of if folder not in taken)

    def files_of(self, folder: str) -> frozenset[str]:
        """The files that a folder takes, with those that what it takes does."""
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


def _target(taking: Taking, path: str, below: Mapping[str, Sequence[str]]) -> str:
    """Where a path leads; of one from the repository's root, which nobody names, below the nearest folder above that has it."""
    if not taking.from_root:
        return _normal(posixpath.join(taking.folder, path))
    above = taking.folder
    while above and posixpath.dirname(above) != above:
        above = posixpath.dirname(above)
        if (target := _normal(posixpath.join(above, path.lstrip("/")))) in below:
            return target
    return _normal(path.lstrip("/"))


def _normal(path: str) -> str:
    normal = posixpath.normpath(path)
    return "" if normal == "." else normal


def _below(files: Iterable[str]) -> dict[str, list[str]]:
    """The files below each folder."""
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
    """Kind and name of the objects that an object names, of those that rules look up by name."""
    spec, metadata = _mapping(value.get("spec")), _mapping(value.get("metadata"))
    named: list[tuple[str, Any]] = [("LocalQueue", _mapping(metadata.get("labels")).get(QUEUE_LABEL))]
    if value.get("kind") == "LocalQueue":
        named.append(("ClusterQueue", spec.get("clusterQueue")))
    if value.get("kind") == "NodePool":
        reference = _mapping(_mapping(_mapping(spec.get("template")).get("spec")).get("nodeClassRef"))
        named.append((str(reference.get("kind")), reference.get("name")))
    for group in _list(spec.get("resourceGroups")):
        named += [("ResourceFlavor", _mapping(flavor).get("name")) for flavor in _list(_mapping(group).get("flavors"))]
    yield from ((kind, name) for kind, name in named if isinstance(name, str))


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
