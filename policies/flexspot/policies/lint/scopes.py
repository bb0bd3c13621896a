"""Which objects are of one cluster, so that rules which compare objects compare those alone.

A name means something only inside one cluster: a queue of one tutorial says nothing of a job of another. Who names no clusters gets those
that the files tell apart, by what public repositories do: a kustomization with what it takes, folders of clusters and environments with
what stands beside them, examples each alone, and folders that declare the same object differently, which one cluster cannot hold.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from flexspot.policies.lint.file_reading import Manifest, named
from flexspot.policies.lint.parts import Taking, Takings, refers_to
from flexspot.policies.lint.yaml_reading import FILLED_LATER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Scope:
    """The objects of one cluster, by their places among the manifests. An object may be in several. `name` is the cluster's.

    `excerpt`: it is a page, which shows of a cluster what it speaks of.
    """

    name: str
    members: tuple[int, ...]
    excerpt: bool = False


_CLUSTERS: Final = frozenset({"clusters", "overlays", "environments", "environment", "envs", "env", "stages"})
"""Folders that hold a folder for each cluster; what stands beside is of every one: fluxcd/flux2-kustomize-helm-example (2026-11-25)."""

_EXAMPLES: Final = frozenset({"blueprints", "demos", "examples", "recipes", "samples", "tutorials"})
"""Folders that hold things which have nothing to do with one another (aws-samples/karpenter-blueprints, 2026-11-25)."""

_ENVIRONMENT: Final = re.compile(
    r"(?:^|[-_.])(?:prod|production|live|staging|stage|stg|dev|development|qa|uat|preprod|canary|eks|gke|aks)(?:$|[-_.])"
    r"|^cluster[-_]?(?:[a-z]|\d+)$|^[a-z0-9]+[-_]cluster$"
)
_COMMON: Final = frozenset({"all", "base", "common", "global", "shared"})

_SAID_TWICE: Final = frozenset({"ConfigMap", "CustomResourceDefinition", "Kustomization", "Namespace", "Secret", "ServiceAccount"})
"""Kinds that several parts of one cluster declare, each for its own use."""

_FOUNDATIONS: Final = ({"NodePool", "ComputeClass"}, {"ClusterQueue"}, {"ResourceFlavor"})
"""What a whole cluster has: two folders that have all of it are two clusters."""

_COMPARED: Final = 2_000
"""The most pairs of parts of one folder that are held against each other: a folder of more is a heap, of which each is judged alone."""

_MARKDOWN: Final = (".md", ".markdown")


@dataclass
class _Part:
    """What a folder or a file holds. `common` is of all its `clusters`; `apart` are scopes that have nothing to do with the rest."""

    name: str
    common: list[int] = field(default_factory=list[int])
    clusters: dict[str, list[int]] = field(default_factory=dict[str, "list[int]"])
    apart: list[Scope] = field(default_factory=list[Scope])

    @property
    def joined(self) -> list[int]:
        """Everything that is not apart."""
        return [*self.common, *(place for members in self.clusters.values() for place in members)]

    def scopes(self) -> list[Scope]:
        """The part as scopes of its own."""
        own = [Scope(name, _ordered((*self.common, *members))) for name, members in self.clusters.items()]
        if not own and self.common:
            own = [Scope(self.name, _ordered(self.common))]
        return [*own, *self.apart]


def scopes_of(manifests: Sequence[Manifest], clusters: Mapping[str, Sequence[str]], takings: Sequence[Taking] = ()) -> list[Scope]:
    """The scopes, each object in at least one.

    `clusters` are those that somebody named, each with its files and folders; `takings` are what kustomizations take. Whatever none of the
    named clusters has is divided by the folders that it is in.
    """
    taken = Takings(takings, {each.path for each in manifests})
    found = [Scope(name, _members(manifests, paths, taken)) for name, paths in clusters.items()]
    left = set(range(len(manifests))).difference(*(scope.members for scope in found))
    for path, places in _by_path(manifests, left).items():
        if path.lower().endswith(_MARKDOWN):
            found.append(Scope(path, tuple(places), excerpt=True))
            left.difference_update(places)
    found += _sharing(manifests, taken, left)
    left = left.difference(*(scope.members for scope in found))
    return _distinct([*found, *_FolderTree(manifests, left).scopes()] if left else found)


def _members(manifests: Sequence[Manifest], paths: Iterable[str], taken: Takings) -> tuple[int, ...]:
    """The objects below some paths, and those that kustomizations there take from elsewhere."""
    tops = [posixpath.normpath(path) for path in paths]

    def within(path: str) -> bool:
        return any(top in {".", path} or path.startswith(f"{top}/") for top in tops)

    elsewhere = {path for folder in taken.folders if within(folder) for path in taken.files_of(folder)}
    return tuple(place for place, each in enumerate(manifests) if within(each.path) or each.path in elsewhere)


def _by_path(manifests: Sequence[Manifest], places: Iterable[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for place in sorted(places):
        found[manifests[place].path].append(place)
    return found


def _sharing(manifests: Sequence[Manifest], taken: Takings, left: set[int]) -> Iterator[Scope]:
    """The kustomizations that nobody takes and that share a file with another such: one cluster takes nothing twice."""
    roots = {folder: taken.files_of(folder) for folder in taken.roots}
    times = Counter(path for files in roots.values() for path in files)
    paths = _by_path(manifests, left)
    for folder, files in roots.items():
        if any(times[path] > 1 for path in files):
            yield Scope(folder or ".", _ordered(place for path in files for place in paths.get(path, ())))


class _FolderTree:
    """The folders of what is to be divided."""

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
        """From the deepest folders up: folders may be nested deeper than Python's calls."""
        done: dict[str, _Part] = {}
        every = {self._top, *self._files, *self._folders}
        for folder in sorted(every, key=lambda each: (each != self._top, each.count("/")), reverse=True):
            done[folder] = self._divided(folder, [done[each] for each in sorted(self._folders.get(folder, ()))])
        return [Scope(self._shortened(each.name), each.members) for each in done[self._top].scopes()]

    def _shortened(self, name: str) -> str:
        """A path as seen from the folder that holds all."""
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
            return _Part(folder, apart=[*apart, *self._told_apart(folder, files).scopes()])
        return self._told_apart(folder, [*below, *files])

    def _of_clusters(self, folder: str, below: list[_Part], files: list[_Part]) -> _Part:
        """A folder for each cluster, and what is of all."""
        shared = [each for each in below if posixpath.basename(each.name).lower() in _COMMON]
        part = self._told_apart(folder, [*files, *shared])
        for each in below:
            if each not in shared:
                name = posixpath.basename(each.name)
                inner = {f"{name}/{below_it}": [*each.common, *members] for below_it, members in each.clusters.items()}
                for cluster, members in (inner or {name: each.common}).items():
                    part.clusters.setdefault(cluster, []).extend(members)
                part.apart += each.apart
        return part

    def _told_apart(self, folder: str, parts: list[_Part]) -> _Part:
        """One part of several, without those that cannot be of one cluster; these are apart, each with what it and they refer to."""
        colliding = self._colliding(parts)
        if not colliding:
            return self._together(folder, parts)
        rest = [each for place, each in enumerate(parts) if place not in colliding]
        apart = [parts[place] for place in sorted(colliding)]
        used: set[int] = set()
        found: list[Scope] = []
        for each in apart:
            beside = [other for other in rest if self._belongs(other, each)] if len(apart) * len(rest) <= _COMPARED else []
            used |= {id(other) for other in beside}
            whole = self._together(each.name, [each, *(_Part(other.name, other.joined) for other in beside)])
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
        """The parts that declare an object which another declares differently, and those that each have all that a cluster has."""
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
        """Whether what collides with nothing is of a part's cluster: a file beside it, a common folder, or what either refers to."""
        folder = posixpath.dirname(part.name)
        if posixpath.basename(other.name).lower() in _COMMON or {part.name, other.name} <= self._files.get(folder, {}).keys():
            return True
        mine, others = self._names(part.joined), self._names(other.joined)
        return not mine[1].isdisjoint(others[0]) or not others[1].isdisjoint(mine[0])

    def _names(self, places: Iterable[int]) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        """Kind and name of what is declared, and of what is referred to and not declared."""
        declared: set[tuple[str, str]] = set()
        referred: set[tuple[str, str]] = set()
        for place in places:
            value = self._manifests[place].value
            _, kind, _, name = named(value)
            declared.add((kind, name))
            referred.update(refers_to(value))
        return declared, referred - declared


def _top_of(paths: Iterable[str]) -> str:
    """The deepest folder that holds all; the working folder where some paths are absolute and others are not."""
    folders = [posixpath.dirname(path) for path in paths]
    return posixpath.commonpath(folders) if len({folder.startswith("/") for folder in folders}) == 1 else ""


def _identity(value: dict[str, Any]) -> tuple[str, ...] | None:
    """What no cluster can hold twice; None for what has no name of its own."""
    version, kind, namespace, name = named(value)
    if name in {"", FILLED_LATER} or kind in _SAID_TWICE:
        return None
    return version.rpartition("/")[0], kind, namespace, name


def _ordered(places: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(places)))


def _distinct(found: list[Scope]) -> list[Scope]:
    """Without those that have nothing, and without those that another has all of under the same name."""
    kept: dict[tuple[str, tuple[int, ...]], Scope] = {}
    for scope in found:
        if scope.members:
            kept.setdefault((scope.name, scope.members), scope)
    return list(kept.values())
