"""Steps that an interrupted run left open in the state, and how the engine reads them back instead of dropping them.

The engine records each step before it starts and removes the record afterwards. After an interruption, the record of a creation says that
the resource may exist. `pulumi refresh` looks only at resources with an id, and with `--clear-pending-creates` it drops the others. The
next `up` then fails with "already exists", and `destroy` leaves the resource behind.

This module adds each such resource to the state under the id that it would have. A refresh then finds out whether it exists, and the engine
drops the others. (`pulumi refresh --import-pending-creates` of 3.259 only renames the record.)
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pulumi import automation

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.deployment.resource_ids import HELM_RELEASE, KUBERNETES, AwsSearch, resource_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from flexspot.infra.deployment.resource_ids import Clients


PROVIDERS = "pulumi:providers:"

_MANAGER = "pulumi-kubernetes"
"""Prefix of the names of the provider's field managers."""

_LIVE_ALONE = frozenset({"created", "modified"})


@dataclass(frozen=True)
class PendingCreate:
    """A resource whose creation was started, with everything that the state records of it."""

    resource: Mapping[str, Any]

    @property
    def urn(self) -> str:
        """The resource's URN."""
        return str(self.resource["urn"])

    @property
    def token(self) -> str:
        """The resource's type token."""
        return str(self.resource["type"])

    @property
    def is_anywhere(self) -> bool:
        """True if the resource would exist outside of the state. Components and providers do not."""
        return bool(self.resource.get("custom")) and not self.token.startswith(PROVIDERS)

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs after the provider's check."""
        found: dict[str, Any] = self.resource.get("inputs") or {}
        return found


class NotIdentified:
    """The answer for a resource of which neither existence nor id can be found out here."""


@dataclass(frozen=True)
class ReadBack:
    """The state to refresh from."""

    deployment: dict[str, Any]
    looked_at: tuple[PendingCreate, ...]
    """Resources to look up in the refresh."""
    unclear: tuple[PendingCreate, ...]
    """Resources that need an answer from the user first."""


def pending_creates(deployment: Mapping[str, Any]) -> list[PendingCreate]:
    """Return the creations that were started and not completed, of resources that would exist outside of the state."""
    pending = [PendingCreate(each["resource"]) for each in _pending(deployment) if each["type"] == "creating"]
    return [each for each in pending if each.is_anywhere]


def is_open(deployment: Mapping[str, Any]) -> bool:
    """Return whether any step was started and not completed."""
    return bool(_pending(deployment))


def read_back(deployment: Mapping[str, Any], identify: Callable[[PendingCreate, frozenset[str]], str | NotIdentified | None]) -> ReadBack:
    """Return the state with everything in it that an interrupted run may have created, and without open steps.

    `identify` returns the id that a resource would have, None if it was not created, or NotIdentified. It receives the ids that the state
    already has, which belong to other resources. The same refresh finds out what an open update or deletion did.
    """
    made = copy.deepcopy(dict(deployment))
    resources = _resources(made)
    looked_at: list[PendingCreate] = []
    unclear: list[PendingCreate] = []
    for pending in pending_creates(made):
        old = next((each for each in resources if each["urn"] == pending.urn and not each.get("delete")), None)
        if old is not None and not old.get("pendingReplacement"):
            # It has the same name, so the same id: the refresh looks at it anyway.
            continue
        answer = identify(pending, frozenset(str(each.get("id", "")) for each in resources))
        if isinstance(answer, NotIdentified):
            unclear.append(pending)
        elif answer is not None:
            if old is not None:
                resources.remove(old)
            resources.append(_created_entry(pending, answer))
            looked_at.append(pending)
    made["resources"] = resources
    made["pending_operations"] = []  # pyrefly: ignore[implicit-any-empty-container] -- JSON
    return ReadBack(made, tuple(looked_at), tuple(unclear))


def with_resources(deployment: Mapping[str, Any], added: Iterable[tuple[PendingCreate, str]]) -> dict[str, Any]:
    """Return the state in which these interrupted creations are recorded as resources, each with its id."""
    made = copy.deepcopy(dict(deployment))
    known = {each["urn"] for each in _resources(made)}
    made["resources"] = [*_resources(made), *(_created_entry(pending, identity) for pending, identity in added if pending.urn not in known)]
    return made


def foreign(deployment: Mapping[str, Any], looked_at: Iterable[PendingCreate]) -> list[str]:
    """Return the URNs of those Kubernetes objects that exist but do not belong to the stack.

    The stack's objects have every label that the program gave them, and a field that this provider wrote. An object that had the name
    before must neither be adopted nor deleted later.
    """
    wanted = {pending.urn: pending for pending in looked_at if pending.token.startswith(KUBERNETES) and pending.token != HELM_RELEASE}
    found = [each for each in _resources(deployment) if each["urn"] in wanted and not each.get("delete")]
    return [str(each["urn"]) for each in found if not _is_ours(each.get("outputs") or {}, wanted[str(each["urn"])].inputs)]


def without(deployment: Mapping[str, Any], urns: Sequence[str]) -> dict[str, Any]:
    """Return the state without some resources, on which nothing else in it depends."""
    made = copy.deepcopy(dict(deployment))
    made["resources"] = [each for each in _resources(made) if each["urn"] not in urns]
    return made


def _pending(deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deployment.get("pending_operations") or []
    return found


def _resources(deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deployment.get("resources") or []
    return found


def _created_entry(pending: PendingCreate, identity: str) -> dict[str, Any]:
    """Return the state's entry of a resource as if it had been created. A refresh fills in the real values.

    It has outputs, so that the provider reads it as a known resource. Without them the provider treats it as an import, and drops all
    inputs that it cannot read back.
    """
    outputs = dict(pending.inputs)
    if pending.token.startswith(KUBERNETES) and "apiVersion" in pending.inputs:
        # The official provider stores these with each object (recordings, scenario 06 and the table of states).
        outputs |= {"__inputs": pending.inputs, "__initialApiVersion": pending.inputs["apiVersion"]}
    kept = {key: value for key, value in pending.resource.items() if key not in _LIVE_ALONE}
    return {**kept, "custom": True, "id": identity, "outputs": outputs}


def _is_ours(live: Mapping[str, Any], inputs: Mapping[str, Any]) -> bool:
    labels = _object(_object(live.get("metadata")).get("labels"))
    wanted = _object(_object(inputs.get("metadata")).get("labels"))
    entries: list[dict[str, Any]] = _object(live.get("metadata")).get("managedFields") or []
    managers = [str(each.get("manager", "")) for each in entries]
    return all(labels.get(key) == value for key, value in wanted.items()) and any(each.startswith(_MANAGER) for each in managers)


def _object(content: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


_AWS = "aws:"
"""Prefix of the type tokens of AWS resources."""


class Identifying:
    """Finds the ids of pending resources. Without `clients`, it creates boto3 clients for the region of `place`."""

    def __init__(self, place: Mapping[str, str], clients: Clients | None = None) -> None:
        self._place = place
        self._clients = clients

    def identify(self, pending: PendingCreate, taken: frozenset[str]) -> str | NotIdentified | None:
        """Return the id, or None if the resource certainly does not exist. `taken` are ids of other resources."""
        if known := resource_id(pending.token, pending.inputs, self._place):
            return known
        if not pending.token.startswith(_AWS):
            return NotIdentified()
        found = AwsSearch(self._clients or self._own_clients()).ids(pending.token, pending.inputs)
        if found is None:
            return NotIdentified()
        left = [each for each in found if each not in taken]
        if len(left) > 1:
            return NotIdentified()
        return left[0] if left else None

    def _own_clients(self) -> Clients:
        import boto3  # noqa: PLC0415

        make = cast("Clients", functools.partial(cast("Any", boto3).client, region_name=self._place["region"]))
        return functools.cache(make)


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Tell = Callable[[str], None]
    Hear = Callable[[automation.EngineEvent], None]
    Identify = Callable[[PendingCreate, frozenset[str]], str | NotIdentified | None]

_EXISTS = "already exists"


@dataclass(frozen=True)
class Settling:
    """Repairs a stack's state. `refresh` has the engine read every resource in it."""

    stack: automation.Stack
    refresh: Callable[[], None]
    tell: Tell

    def settle(self, identify: Identify, answers: Mapping[str, str | None]) -> None:
        """Find out whether pending resources were created, and record the result in the state.

        `answers` override `identify`: ids by URN, None for a resource that was not created. Raises ExplainedError with a remedy for answers
        about resources that are not pending, and for resources that `identify` cannot find. The state is then unchanged.
        """
        exported = self.stack.export_stack()
        deployment = exported.deployment or {}
        pending = pending_creates(deployment)
        _check_answers(self.stack.name, answers, pending)
        if not is_open(deployment):
            return
        self.tell(f"An earlier run was interrupted; checking first what it left behind ({len(pending)} pending).\n")
        made = read_back(deployment, lambda each, taken: answers[each.urn] if each.urn in answers else identify(each, taken))
        if made.unclear:
            raise _unclear(self.stack.name, made.unclear)
        self._look(automation.Deployment(version=exported.version, deployment=made.deployment), made.looked_at)

    def take_in(self, existing: Iterable[PendingCreate]) -> set[str]:
        """Add existing objects that belong to this stack to the state; return their URNs."""
        named = [(each, identity) for each in existing if (identity := resource_id(each.token, each.inputs, {}))]
        if not named:
            return set()
        exported = self.stack.export_stack()
        deployment = with_resources(exported.deployment or {}, named)
        self.tell(f"{len(named)} of the objects exist, and the state does not know them; looking whether they are this stack's own.\n")
        wanted = [each for each, _ in named]
        return {each.urn for each in wanted} & self._look(automation.Deployment(version=exported.version, deployment=deployment), wanted)

    def _look(self, state: automation.Deployment, looked_at: Iterable[PendingCreate]) -> set[str]:
        """Replace the stack's state by `state`, refresh it, and remove objects that do not belong to it. Return the remaining URNs."""
        self.stack.import_stack(state)
        self.refresh()
        exported = self.stack.export_stack()
        deployment = exported.deployment or {}
        if others := foreign(deployment, looked_at):
            deployment = without(deployment, others)
            self.stack.import_stack(automation.Deployment(version=exported.version, deployment=deployment))
            self.tell(f"Not this stack's own, so left alone: {', '.join(each.rpartition('::')[2] for each in others)}.\n")
        resources: list[dict[str, Any]] = deployment.get("resources") or []
        return {str(each["urn"]) for each in resources}


class Existing:
    """Collects, from the engine's events, the Kubernetes objects that could not be created because they exist.

    Only objects of a cluster: a cloud's labels do not say which stack something belongs to.
    """

    def __init__(self, hear: Hear | None) -> None:
        self._hear = hear
        self._creating: dict[str, PendingCreate] = {}
        self.found: list[PendingCreate] = []

    def hear(self, event: automation.EngineEvent) -> None:
        """Record one event and pass it on."""
        if self._hear is not None:
            self._hear(event)
        step = event.resource_pre_event
        if step is not None and step.metadata.new is not None and step.metadata.new.custom:
            new = step.metadata.new
            kept = {"urn": new.urn, "type": new.type, "inputs": dict(new.inputs or {}), "parent": new.parent, "provider": new.provider}
            self._creating[new.urn] = PendingCreate({"custom": True, **{key: value for key, value in kept.items() if value}})
        diagnostic = event.diagnostic_event
        if diagnostic is not None and diagnostic.urn and diagnostic.severity == "error" and _EXISTS in diagnostic.message:
            pending = self._creating.get(diagnostic.urn)
            if pending is not None and pending.token.startswith(KUBERNETES) and pending.token != HELM_RELEASE and pending not in self.found:
                self.found.append(pending)


def _check_answers(stack: str, answers: Iterable[str], pending: Iterable[PendingCreate]) -> None:
    open_urns = [each.urn for each in pending]
    if unknown := [urn for urn in answers if urn not in open_urns]:
        raise ExplainedError(
            f"--made, --not-made: no interrupted run of stack {stack} was creating {', '.join(unknown)}.",
            "name a resource of the lines above, or remove the option."
            if open_urns
            else "remove the option; no interrupted creation waits for an answer.",
            evidence=tuple(open_urns),
            exit_code=ExitCode.BAD_USAGE,
        )


def _unclear(stack: str, unclear: Iterable[PendingCreate]) -> ExplainedError:
    questions = tuple(f"{each.token} {each.urn.rpartition('::')[2]}: --made '{each.urn}=ID' or --not-made '{each.urn}'" for each in unclear)
    return ExplainedError(
        f"stack {stack}: an earlier run was interrupted while it created resources that cannot be found by name.",
        "check in the cloud's console or command line whether each resource exists, and run the same command again with its --made or "
        "--not-made.",
        evidence=questions,
    )
