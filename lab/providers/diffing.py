"""What is different between an object as it is and as the program wants it, and how the engine is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pulumi.runtime.proto import provider_pb2

from capacity.values import json_differences
from capacity.values.json_differences import ABSENT, Path, same, written_path
from lab.providers.immutable import replaces
from lab.providers.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Change(StrEnum):
    """ADD and DELETE are of a field or an element; UPDATE is of a value, or one to a value that is not known yet."""

    ADD = "ADD"
    DELETE = "DELETE"
    UPDATE = "UPDATE"


@dataclass(frozen=True)
class Difference:
    """One property. `replaces` says that the object must be made anew for it."""

    path: Path
    change: Change
    replaces: bool

    @property
    def written(self) -> str:
        """The path in Pulumi's form, such as `spec.containers[0].image` or `metadata.labels["app.kubernetes.io/name"]`."""
        return written_path(self.path)


def differences(old: Any, new: Any, replacing: Sequence[tuple[str, ...]] = ()) -> list[Difference]:
    """The properties in which `new` differs from `old`; lists are compared by position."""
    return [
        Difference(path, _change(before, after), replaces(path, None if after is ABSENT else after, replacing))
        for path, before, after in json_differences.differences(old, new, _alike)
    ]


def _change(old: Any, new: Any) -> Change:
    if new is ABSENT:
        return Change.DELETE
    return Change.ADD if old is ABSENT else Change.UPDATE


def _alike(old: Any, new: Any) -> bool:
    # What is not known yet may become anything.
    return new is not UNKNOWN and same(old, new)


def not_ignored(found: Iterable[Difference], ignored: Iterable[str]) -> list[Difference]:
    """`found` without what is at or in one of the paths of the resource option `ignore_changes`."""
    prefixes = list(ignored)
    return [each for each in found if not any(_is_in(each.written, prefix) for prefix in prefixes)]


def _is_in(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))


def top_level(found: Iterable[Difference]) -> list[str]:
    """The properties of the resource itself in which something differs, once each."""
    return list(dict.fromkeys(str(each.path[0]) for each in found))


def diff_answer(
    found: Sequence[Difference],
    *,
    replaces: Sequence[str],
    diffs: Sequence[str] = (),
    delete_before_replace: bool = False,
    of_inputs: Callable[[Difference], bool] = lambda _: True,
) -> Any:
    """The engine's message. `of_inputs` says of which differences it should show the inputs' values instead of the outputs'."""
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
