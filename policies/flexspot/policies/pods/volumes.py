"""What a pod's containers mount, where they say that they write checkpoints, and whether that outlives the pod."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from flexspot.policies.values.field import UNKNOWN, Field, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.policies.inventory.views import PodSet


_GO_WITH_THE_POD = ("emptyDir", "ephemeral")
_GO_WITH_THE_NODE = ("hostPath",)


@dataclass(frozen=True)
class Mount:
    """One volume in one container. `volume` is the pod's entry of that name, absent where the pod's own list has none.

    A StatefulSet's claim templates make volumes that no pod lists; those outlive pods.
    """

    path: Field
    name: str
    volume: Field

    @property
    def ephemeral(self) -> str | Unknown:
        """The sort of volume, such as emptyDir, where it ends with the pod or with the node; empty where it outlives both."""
        if not self.volume.known:
            return UNKNOWN
        sources = [key for key, _ in self.volume.parts().named if key != "name"]
        # Kubernetes makes a volume of no sort an emptyDir.
        if not self.volume.absent and not sources:
            return "emptyDir"
        return next((each for each in sources if each in (*_GO_WITH_THE_POD, *_GO_WITH_THE_NODE)), "")


def mounts_of(pod: Field, container: Field) -> Iterator[Mount]:
    """The mounts of one container of `pod`."""
    listed = pod.at("volumes")
    volumes = {each.at("name").text(): each for each in listed.parts().fields}
    for mount in container.at("volumeMounts").parts().fields:
        name = mount.at("name").text()
        missing = Field(None) if listed.parts().complete and UNKNOWN not in volumes and name is not UNKNOWN else Field(UNKNOWN)
        yield Mount(mount.at("mountPath"), name if isinstance(name, str) else "a volume", volumes.get(name, missing))


def claims_of(pod: Field) -> Iterator[tuple[str, Field]]:
    """Place and name of every claim among a pod's volumes."""
    for place, volume in pod.at("volumes").parts().named:
        claim = volume.at("persistentVolumeClaim")
        if not claim.absent:
            yield f"volumes[{place}].persistentVolumeClaim.claimName", claim.at("claimName")


MOUNTED = "{where}: {path} of {container}"
NAMED = "{where}: what {name} of {container} names"
IN_CONTAINER = "the container's own file system, which ends with the container"
IN_VOLUME = "volume {volume}, of the sort {sort}, which ends with the {end}"


@dataclass(frozen=True)
class CheckpointPlace:
    """`described` names the place without quoting a value that may be a secret. `ends_with` is empty where it outlives pod and node."""

    described: str
    ends_with: str | Unknown
    at: str


def checkpoint_places(pods: PodSet, words: tuple[str, ...], names: tuple[str, ...]) -> Iterator[CheckpointPlace]:
    """Mounts of which a part of the path holds one of `words`, and the paths that an argument or a variable of `names` gives.

    What is no absolute path, such as the URL of a bucket, or names a file, is passed over.
    """
    spelled = _spelled(names)
    for name, container in pods.containers:
        mounts = list(mounts_of(pods.pod, container))
        for mount in mounts:
            path = mount.path.text()
            if isinstance(path, str) and any(word in part.lower() for part in PurePosixPath(path).parts for word in words):
                yield CheckpointPlace(
                    MOUNTED.format(where=pods.where, path=path, container=name), _ends_with(mount), f"{pods.where}.volumes"
                )
        for given, path in _named_paths(container):
            if _plain(given) in spelled and path.startswith("/") and not PurePosixPath(path).suffix:
                yield CheckpointPlace(
                    NAMED.format(where=pods.where, name=given, container=name), _at(path, mounts), f"{pods.where}.containers"
                )


@cache
def _spelled(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(_plain, names))


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    """A name without dashes, dots before it, and case, so that --trainer.checkpoint_dir and CHECKPOINT_DIR are one."""
    return re.sub(r"[-_]", "", name.rpartition(".")[2]).lower()


def _named_paths(container: Field) -> Iterator[tuple[str, str]]:
    """The arguments and variables that have a value, each with its name."""
    arguments = [word for field in ("command", "args") for each in container.at(field).parts().fields for word in _words(each.text())]
    for each, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if isinstance(each, str) and each.startswith("-"):
            name, equals, value = each.partition("=")
            if equals or isinstance(following, str):
                yield name, value if equals else str(following)
    for variable in container.at("env").parts().fields:
        name, value = variable.at("name").text(), variable.at("value").text()
        if isinstance(name, str) and isinstance(value, str):
            yield name, value


_SCRIPT: Final = re.compile(r"\s--?[A-Za-z]")
_QUOTES: Final = str.maketrans("", "", "'\"\\")
_BETWEEN: Final = re.compile(r"[\s;|&]+")
"""Of what a shell is given: quotes fall away, and a backslash at a line's end joins lines."""


def _words(argument: str | Unknown | None) -> list[str | Unknown | None]:
    """An argument, or the words of one that is a script with arguments in it, as after `sh -c`."""
    if isinstance(argument, str) and _SCRIPT.search(argument):
        return list(_BETWEEN.split(argument.translate(_QUOTES)))
    return [argument]


def _at(path: str, mounts: Iterable[Mount]) -> str | Unknown:
    """What a path ends with: of the mounts above it the nearest decides, and without one the container's own file system."""
    paths = [(each.path.text(), each) for each in mounts]
    above = [(where, each) for where, each in paths if isinstance(where, str) and PurePosixPath(path).is_relative_to(where)]
    if above:
        return _ends_with(max(above, key=lambda each: len(each[0]))[1])
    return UNKNOWN if any(where is UNKNOWN for where, _ in paths) else IN_CONTAINER


def _ends_with(mount: Mount) -> str | Unknown:
    sort = mount.ephemeral
    if sort is UNKNOWN or not sort:
        return sort
    return IN_VOLUME.format(volume=mount.name, sort=sort, end="node" if sort == "hostPath" else "pod")
