"""What is different between an object as it is and as the program wants it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from lab.providers.immutable import Path, replaces
from lab.providers.values import UNKNOWN, is_list, is_object

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
    def is_of_inputs(self) -> bool:
        """Whether the engine should show the inputs' values: a removed property is in no outputs that it could show."""
        return self.change is Change.DELETE

    @property
    def written(self) -> str:
        """The path in Pulumi's form, such as `spec.containers[0].image` or `metadata.labels["app.kubernetes.io/name"]`."""
        return written_path(self.path)


class _Missing:
    """No value, which is not the same as a null one."""


_MISSING: Final = _Missing()


def differences(old: Any, new: Any, replacing: Sequence[tuple[str, ...]] = ()) -> list[Difference]:
    """The properties in which `new` differs from `old`; lists are compared by position."""
    found: list[Difference] = []
    _compare((), old, new, lambda path, change, value: found.append(Difference(path, change, replaces(path, value, replacing))))
    return found


def _compare(path: Path, old: Any, new: Any, report: Callable[[Path, Change, Any], None]) -> None:
    if new is _MISSING:
        report(path, Change.DELETE, None)
    elif old is _MISSING:
        report(path, Change.ADD, new)
    elif is_object(old) and is_object(new):
        for key in [*old, *(key for key in new if key not in old)]:
            _compare((*path, key), old.get(key, _MISSING), new.get(key, _MISSING), report)
    elif is_list(old) and is_list(new):
        for position, (before, after) in enumerate(zip_longest(old, new, fillvalue=_MISSING)):
            _compare((*path, position), before, after, report)
    elif new is UNKNOWN or not _same(old, new):
        report(path, Change.UPDATE, new)


def _same(old: Any, new: Any) -> bool:
    """Whether two values are the same JSON; 1 and 1.0 are, 1 and true are not."""
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def not_ignored(found: Iterable[Difference], ignored: Iterable[str]) -> list[Difference]:
    """`found` without what is at or in one of the paths of the resource option `ignore_changes`."""
    prefixes = list(ignored)
    return [each for each in found if not any(_is_in(each.written, prefix) for prefix in prefixes)]


def _is_in(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))


def written_path(path: Path) -> str:
    """A path in Pulumi's form."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif set(key) & set('."[]'):
            quoted = key.replace('"', '\\"')
            text += f'["{quoted}"]'
        else:
            text += f".{key}" if text else key
    return text
