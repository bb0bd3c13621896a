"""Division of objects into clusters, so that rules which compare objects compare only objects of the same cluster.

Names are unique only within a cluster: a queue in one tutorial is unrelated to a job in another. If the configuration names no clusters,
they follow from the files, by conventions of public repositories:
- a kustomization and the files that it includes,
- folders of clusters and environments, with the files next to them,
- examples, each alone,
- folders that declare the same object differently, which a single cluster cannot contain.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from flexspot.policies.lint.file_reading import Manifest, named
from flexspot.policies.lint.parts import Include, Includes, refers_to
from flexspot.policies.lint.yaml_reading import FILLED_LATER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Scope:
    """The objects of one cluster. An object may be in several scopes."""

    name: str
    """Name of the cluster."""
    members: tuple[int, ...]
    """Indexes of the objects among the manifests."""
    excerpt: bool = False
    """True for a page, which shows only some objects of a cluster."""


_CLUSTERS: Final = frozenset({"clusters", "overlays", "environments", "environment", "envs", "env", "stages"})
"""Folders with a subfolder for each cluster. Files next to these belong to every cluster: fluxcd/flux2-kustomize-helm-example (2026-11-25).
"""

_EXAMPLES: Final = frozenset({"blueprints", "demos", "examples", "recipes", "samples", "tutorials"})
"""Folders whose contents are unrelated to one another (aws-samples/karpenter-blueprints, 2026-11-25)."""

_ENVIRONMENT: Final = re.compile(
    r"(?:^|[-_.])(?:prod|production|live|staging|stage|stg|dev|development|qa|uat|preprod|canary|eks|gke|aks)(?:$|[-_.])"
    r"|^cluster[-_]?(?:[a-z]|\d+)$|^[a-z0-9]+[-_]cluster$"
)
_COMMON: Final = frozenset({"all", "base", "common", "global", "shared"})

_SHARED_KINDS: Final = frozenset({"ConfigMap", "CustomResourceDefinition", "Kustomization", "Namespace", "Secret", "ServiceAccount"})
"""Kinds that several parts of one cluster may declare, each for its own use."""

_FOUNDATIONS: Final = ({"NodePool", "ComputeClass"}, {"ClusterQueue"}, {"ResourceFlavor"})
"""Kinds of a whole cluster. Two folders that each have all of them are two clusters."""

_MAX_COMPARED_PAIRS: Final = 2_000
"""Most pairs of parts of one folder that are compared. A larger folder is not a cluster; its parts are judged separately."""

_MARKDOWN: Final = (".md", ".markdown")


@dataclass
class _Part:
    """Objects of a folder or a file."""

    name: str
    common: list[int] = field(default_factory=list[int])
    """Objects of all its `clusters`."""
    clusters: dict[str, list[int]] = field(default_factory=dict[str, "list[int]"])
    apart: list[Scope] = field(default_factory=list[Scope])
    """Scopes that are unrelated to the rest."""

    @property
    def joined(self) -> list[int]:
        """All objects except those that are apart."""
        return [*self.common, *(place for members in self.clusters.values() for place in members)]

    def scopes(self) -> list[Scope]:
        """Return the part as separate scopes."""
        own = [Scope(name, _ordered((*self.common, *members))) for name, members in self.clusters.items()]
        if not own and self.common:
            own = [Scope(self.name, _ordered(self.common))]
        return [*own, *self.apart]


def scopes_of(manifests: Sequence[Manifest], clusters: Mapping[str, Sequence[str]], includes: Sequence[Include] = ()) -> list[Scope]:
    """Return the scopes. Each object is in at least one.

    `clusters` are those of the configuration, each with its files and folders. `includes` are those of kustomizations. Objects outside all
    configured clusters are divided by folder.
    """
    graph = Includes(includes, {each.path for each in manifests})
    found = [Scope(name, _members(manifests, paths, graph)) for name, paths in clusters.items()]
    left = set(range(len(manifests))).difference(*(scope.members for scope in found))
    for path, places in _by_path(manifests, left).items():
        if path.lower().endswith(_MARKDOWN):
            found.append(Scope(path, tuple(places), excerpt=True))
            left.difference_update(places)
    found += _sharing(manifests, graph, left)
    left = left.difference(*(scope.members for scope in found))
    return _distinct([*found, *_FolderTree(manifests, left).scopes()] if left else found)


def _members(manifests: Sequence[Manifest], paths: Iterable[str], graph: Includes) -> tuple[int, ...]:
    """Return the objects below some paths, and those elsewhere that kustomizations below these paths include."""
    roots = [posixpath.normpath(path) for path in paths]

    def within(path: str) -> bool:
        return any(top in {".", path} or path.startswith(f"{top}/") for top in roots)

    elsewhere = {path for folder in graph.folders if within(folder) for path in graph.files_of(folder)}
    return tuple(place for place, each in enumerate(manifests) if within(each.path) or each.path in elsewhere)


def _by_path(manifests: Sequence[Manifest], places: Iterable[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for place in sorted(places):
        found[manifests[place].path].append(place)
    return found


def _sharing(manifests: Sequence[Manifest], graph: Includes, left: set[int]) -> Iterator[Scope]:
    """Yield the top-level kustomizations that share a file with another one.

    They are different clusters, because a cluster includes no file twice.
    """
    roots = {folder: graph.files_of(folder) for folder in graph.roots}
    times = Counter(path for files in roots.values() for path in files)
    paths = _by_path(manifests, left)
    for folder, files in roots.items():
        if any(times[path] > 1 for path in files):
            yield Scope(folder or ".", _ordered(place for path in files for place in paths.get(path, ())))


class _FolderTree:
    """The folders of the objects that are to be divided."""

    def __init__(self, manifests: Sequence[Manifest], places: set[int]) -> None:
        self._manifests = manifests
        self._files: dict[str, dict[str, list[int]]] = defaultdict(dict)
        self._folders: dict[str, set[str]] = defaultdict(set)
        of_paths = _by_path(manifests, places)
        self._top = _top_of(of_paths)
        for path, listed in of_paths.items():
            folder = posixpath.dirname(path)
            self._files[folder][path] = listed
            while folder != self._top:
                above = posixpath.dirname(folder)
                if above == folder:
                    above = self._top
                self._folders[above].add(folder)
                folder = above

    def scopes(self) -> list[Scope]:
        """Return the scopes, from the deepest folders up.

        Does not recurse, because folders may be nested deeper than Python's recursion limit.
        """
        done: dict[str, _Part] = {}
        every = {self._top, *self._files, *self._folders}
        for folder in sorted(every, key=lambda each: (each != self._top, each.count("/")), reverse=True):
            done[folder] = self._divided(folder, [done[each] for each in sorted(self._folders.get(folder, ()))])
        return [Scope(self._shortened(each.name), each.members) for each in done[self._top].scopes()]

    def _shortened(self, name: str) -> str:
        """Return a path relative to the common top folder."""
        if name == self._top:
            return posixpath.basename(name) or "."
        return name.removeprefix(f"{self._top}/") if self._top else name

    def _divided(self, folder: str, below: list[_Part]) -> _Part:
        name = posixpath.basename(folder)
        files = [_Part(path, places) for path, places in self._files.get(folder, {}).items()]
        if name.lower() in _CLUSTERS or sum(bool(_ENVIRONMENT.search(posixpath.basename(each.name).lower())) for each in below) > 1:
            return self._of_clusters(folder, below, files)
        if name.lower() in _EXAMPLES and below:
            apart = [scope for each in below for scope in each.scopes()]
            return _Part(folder, apart=[*apart, *self._separated(folder, files).scopes()])
        return self._separated(folder, [*below, *files])

    def _of_clusters(self, folder: str, below: list[_Part], files: list[_Part]) -> _Part:
        """Return the part of a folder with a subfolder for each cluster and files for all of them."""
        shared = [each for each in below if posixpath.basename(each.name).lower() in _COMMON]
        part = self._separated(folder, [*files, *shared])
        for each in below:
            if each not in shared:
                name = posixpath.basename(each.name)
                inner = {f"{name}/{below_it}": [*each.common, *members] for below_it, members in each.clusters.items()}
                for cluster, members in (inner or {name: each.common}).items():
                    part.clusters.setdefault(cluster, []).extend(members)
                part.apart += each.apart
        return part

    def _separated(self, folder: str, parts: list[_Part]) -> _Part:
        """Join parts into one, except for those that cannot be in one cluster.

        These become separate scopes with the parts that they refer to or that refer to them.
        """
        colliding = self._colliding(parts)
        if not colliding:
            return self._together(folder, parts)
        rest = [each for place, each in enumerate(parts) if place not in colliding]
        apart = [parts[place] for place in sorted(colliding)]
        used: set[int] = set()
        found: list[Scope] = []
        for each in apart:
            related = [other for other in rest if self._belongs(other, each)] if len(apart) * len(rest) <= _MAX_COMPARED_PAIRS else []
            used |= {id(other) for other in related}
            whole = self._together(each.name, [each, *(_Part(other.name, other.joined) for other in related)])
            found += whole.scopes()
        part = self._together(folder, [each for each in rest if id(each) not in used])
        part.apart += [*found, *(scope for each in rest if id(each) in used for scope in each.apart)]
        return part

    def _together(self, folder: str, parts: list[_Part]) -> _Part:
        whole = _Part(folder)
        for each in parts:
            whole.common += each.common
            whole.apart += each.apart
            for name, members in each.clusters.items():
                whole.clusters.setdefault(name, []).extend(members)
        return whole

    def _colliding(self, parts: list[_Part]) -> set[int]:
        """Return the parts that declare an object differently from another part, and those that each have all kinds of a whole cluster."""
        if len(parts) < 2:  # noqa: PLR2004 -- one part collides with nothing
            return set()
        seen: dict[tuple[str, ...], tuple[int, Any]] = {}
        found: set[int] = set()
        whole: list[int] = []
        for number, part in enumerate(parts):
            kinds: set[str] = set()
            for place in part.joined:
                value = self._manifests[place].value
                kinds.add(str(value["kind"]))
                identity = _identity(value)
                if identity is None:
                    continue
                first, other = seen.setdefault(identity, (number, value))
                if first != number and other != value:
                    found |= {first, number}
            if all(kinds & wanted for wanted in _FOUNDATIONS):
                whole.append(number)
        return found | (set(whole) if len(whole) > 1 else set())

    def _belongs(self, other: _Part, part: _Part) -> bool:
        """Return whether a part without collisions belongs to `part`: a file next to it, a common folder, or one with references to or from
        it.
        """
        folder = posixpath.dirname(part.name)
        if posixpath.basename(other.name).lower() in _COMMON or {part.name, other.name} <= self._files.get(folder, {}).keys():
            return True
        mine, others = self._names(part.joined), self._names(other.joined)
        return not mine[1].isdisjoint(others[0]) or not others[1].isdisjoint(mine[0])

    def _names(self, places: Iterable[int]) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        """Return kind and name of the declared objects, and of the objects that are only referred to."""
        declared: set[tuple[str, str]] = set()
        referred: set[tuple[str, str]] = set()
        for place in places:
            value = self._manifests[place].value
            _, kind, _, name = named(value)
            declared.add((kind, name))
            referred.update(refers_to(value))
        return declared, referred - declared


def _top_of(paths: Iterable[str]) -> str:
    """Return the deepest folder above all paths. The working folder if only some of the paths are absolute."""
    folders = [posixpath.dirname(path) for path in paths]
    return posixpath.commonpath(folders) if len({folder.startswith("/") for folder in folders}) == 1 else ""


def _identity(value: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the identity that must be unique in a cluster. None for objects without a name of their own."""
    version, kind, namespace, name = named(value)
    if name in {"", FILLED_LATER} or kind in _SHARED_KINDS:
        return None
    return version.rpartition("/")[0], kind, namespace, name


def _ordered(places: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(places)))


def _distinct(found: list[Scope]) -> list[Scope]:
    """Return the scopes without empty ones and duplicates."""
    kept: dict[tuple[str, tuple[int, ...]], Scope] = {}
    for scope in found:
        if scope.members:
            kept.setdefault((scope.name, scope.members), scope)
    return list(kept.values())
