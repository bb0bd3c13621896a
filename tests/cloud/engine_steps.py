"""A model of the engine's step generator: the steps of an `up` when a deployed stack's program declares something else.

Providers answer by the rule files and by the stand-in Kubernetes provider's tables. A replacement under an explicit name deletes first,
with everything that would have to be replaced after it. The engine's own code is pulumi/pulumi, pkg/resource/deploy/step_generator.go
(`generateStepsFromDiff`, `calculateDependentReplacements`), read 2026-11-24.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from program_declarations import COMPONENTS, id_of

from flexspot.lab.providers.cloud_rules.rule_differences import answered, deletes_first
from flexspot.lab.providers.planning import not_ignored
from flexspot.lab.providers.values import UNKNOWN, is_list, is_object

if TYPE_CHECKING:
    from program_declarations import Declarations, Declared

    from flexspot.lab.providers.planning import Difference


class Operation(StrEnum):
    """Operation on a resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True)
class Step:
    """Operation on one resource. `paths` are the inputs that change; of a replacement, those that force it.

    `first` says that the old resource is deleted before the new one is created.
    """

    name: str
    operation: Operation
    paths: tuple[str, ...] = ()
    first: bool = False

    @property
    def kind(self) -> str:
        return self.name.partition(" ")[0]


@dataclass
class Run:
    """The steps in the engine's order, and the protected resources for which it refuses the whole run."""

    steps: list[Step] = field(default_factory=list[Step])
    refused: list[str] = field(default_factory=list[str])

    def of(self, *operations: Operation) -> list[Step]:
        return [each for each in self.steps if each.operation in operations]

    @property
    def lost(self) -> list[Step]:
        """The resources that are deleted, for good or to be replaced."""
        return self.of(Operation.REPLACE, Operation.DELETE)


def steps(before: Declarations, after: Declarations) -> Run:
    """Return the steps of an `up` of `after` where `before` was deployed. Components deploy nothing and are left out."""
    return _Engine(before, after).run()


class _Engine:
    def __init__(self, before: Declarations, after: Declarations) -> None:
        self._before, self._after = before.made, after.made
        self._gone: dict[str, None] = {}
        """Replaced resources, whose cloud-assigned values are not known."""
        self._deleted_first: dict[str, tuple[str, ...]] = {}
        """Resources deleted before their own turn, with the inputs that forced it."""
        self._run = Run()

    def run(self) -> Run:
        for name, new in self._after.items():
            if not new.type.startswith(COMPONENTS):
                self._register(name, new)
        for name, old in self._before.items():
            if name not in self._after and not old.type.startswith(COMPONENTS):
                if old.protected:
                    self._run.refused.append(name)
                self._run.steps.append(Step(name, Operation.DELETE))
        return self._run

    def _register(self, name: str, new: Declared) -> None:
        old = self._before.get(name)
        if old is None:
            self._gone[name] = None
            self._run.steps.append(Step(name, Operation.CREATE))
            return
        found = self._differences(old, new, self._unknown)
        paths = tuple(each.written for each in found if each.replaces)
        if name in self._deleted_first:
            self._replace(name, self._deleted_first[name], first=True)
        elif paths or self._provider_gone(new):
            if old.protected and new.protected:
                self._run.refused.append(name)
            first = deletes_first(new.type, old.inputs, new.inputs)
            self._replace(name, paths or ("its provider",), first=first)
            if first:
                self._delete_dependents(name)
        elif found:
            self._run.steps.append(Step(name, Operation.UPDATE, tuple(each.written for each in found)))

    def _replace(self, name: str, paths: tuple[str, ...], *, first: bool) -> None:
        self._gone[name] = None
        self._run.steps.append(Step(name, Operation.REPLACE, paths, first))

    def _provider_gone(self, new: Declared) -> bool:
        return new.own_provider in self._gone

    def _delete_dependents(self, root: str) -> None:
        """Delete, before `root`, each old resource that would be replaced if the values that it takes from `root` were unknown."""
        condemned = {root}
        names = list(self._before)
        for name in names[names.index(root) + 1 :]:
            old = self._before[name]
            if old.type.startswith(COMPONENTS) or name in self._gone or name in self._deleted_first:
                continue
            if old.own_provider in condemned:
                paths: tuple[str, ...] = ("its provider",)
            else:
                touched = [key for key, origins in old.by_input.items() if origins & condemned]
                if not touched:
                    continue
                unknown = _Blank(frozenset(touched))
                found = self._differences(old, old, unknown)
                paths = tuple(each.written for each in found if each.replaces)
            if paths:
                condemned.add(name)
                self._deleted_first[name] = paths
                if old.protected:
                    self._run.refused.append(name)

    def _differences(self, old: Declared, new: Declared, unknown: Any) -> list[Difference]:
        before = {key: _marked(value, old.by_input.get(key, set())) for key, value in old.inputs.items()}
        after = {key: unknown(key, value, new.by_input.get(key, set())) for key, value in new.inputs.items()}
        found = not_ignored(answered(new.type, before, after), new.ignored)
        return [replace(each, replaces=each.replaces or each.written in new.replaced_for) for each in found]

    def _unknown(self, _key: str, value: Any, origins: set[str]) -> Any:
        """Return a new input as the engine sees it: unknown where it contains a cloud-assigned value of a replaced resource."""
        lost = set(self._gone)
        texts = [id_of(each) for each in lost]

        def filled(part: Any) -> Any:
            if is_object(part):
                if part == {"$unknown": True}:
                    return UNKNOWN if origins & lost else _mark(origins)
                return {key: filled(each) for key, each in part.items()}
            if is_list(part):
                return [filled(each) for each in part]
            return UNKNOWN if isinstance(part, str) and any(text in part for text in texts) else part

        return filled(value)


@dataclass(frozen=True)
class _Blank:
    """Inputs of which some are unknown as a whole."""

    keys: frozenset[str]

    def __call__(self, key: str, value: Any, origins: set[str]) -> Any:
        return UNKNOWN if key in self.keys else _marked(value, origins)


def _mark(origins: set[str]) -> str:
    return f"of {', '.join(sorted(origins))}"


def _marked(value: Any, origins: set[str]) -> Any:
    """Return a deployed input: values unknown here were known, and came from `origins`."""
    if is_object(value):
        return _mark(origins) if value == {"$unknown": True} else {key: _marked(each, origins) for key, each in value.items()}
    return [_marked(each, origins) for each in value] if is_list(value) else value
