"""What an interrupted run left open in the state, and how the engine reads it back instead of forgetting it.

The engine notes each step before it begins and takes the note away when it is over. After an interruption a note of a creation says that
the resource may be there. `pulumi refresh` looks only at what has an id, and with `--clear-pending-creates` it forgets the rest: the next
`up` then fails with "already exists", and `destroy` leaves it behind. Here each such resource is put into the state under the id that it
has if it was made, and a refresh finds out whether it is there: the engine drops what is not. (`pulumi refresh --import-pending-creates`
of 3.259 only renames the note.)
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
"""What the names of the provider's field managers begin with."""

_LIVE_ALONE = frozenset({"created", "modified"})


@dataclass(frozen=True)
class Begun:
    """A resource whose creation was begun, with all that the state says of it."""

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
        """Whether it would be anywhere but in the state: components and providers are not."""
        return bool(self.resource.get("custom")) and not self.token.startswith(PROVIDERS)

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs after the provider's check."""
        found: dict[str, Any] = self.resource.get("inputs") or {}
        return found


class NotIdentified:
    """Whether the resource was made, and under which id, cannot be found out here."""


@dataclass(frozen=True)
class ReadBack:
    """The state to refresh from, and the resources to look up. `unclear` needs an answer from a person first."""

    deployment: dict[str, Any]
    looked_at: tuple[Begun, ...]
    unclear: tuple[Begun, ...]


def begun_in(deployment: Mapping[str, Any]) -> list[Begun]:
    """The creations that were begun and not seen to end, of what would be anywhere but in the state."""
    begun = [Begun(each["resource"]) for each in _pending(deployment) if each["type"] == "creating"]
    return [each for each in begun if each.is_anywhere]


def is_open(deployment: Mapping[str, Any]) -> bool:
    """Whether any step was begun and not seen to end."""
    return bool(_pending(deployment))


def read_back(deployment: Mapping[str, Any], identify: Callable[[Begun, frozenset[str]], str | NotIdentified | None]) -> ReadBack:
    """The state with everything in it that an interrupted run may have created, and without open steps.

    `identify` answers with the id that a resource has if it was made, None if it was not made, or NotIdentified; it is given the ids that
    the state has already, which belong to others. What an open update or deletion did is found by the same refresh.
    """
    made = copy.deepcopy(dict(deployment))
    resources = _resources(made)
    looked_at: list[Begun] = []
    unclear: list[Begun] = []
    for begun in begun_in(made):
        old = next((each for each in resources if each["urn"] == begun.urn and not each.get("delete")), None)
        if old is not None and not old.get("pendingReplacement"):
            # The same name, so the same id: the refresh looks at it anyway.
            continue
        answer = identify(begun, frozenset(str(each.get("id", "")) for each in resources))
        if isinstance(answer, NotIdentified):
            unclear.append(begun)
        elif answer is not None:
            if old is not None:
                resources.remove(old)
            resources.append(_made(begun, answer))
            looked_at.append(begun)
    made["resources"] = resources
    made["pending_operations"] = []  # pyrefly: ignore[implicit-any-empty-container] -- JSON
    return ReadBack(made, tuple(looked_at), tuple(unclear))


def with_resources(deployment: Mapping[str, Any], added: Iterable[tuple[Begun, str]]) -> dict[str, Any]:
    """The state with resources in it that exist and that it does not know, each under its id."""
    made = copy.deepcopy(dict(deployment))
    known = {each["urn"] for each in _resources(made)}
    made["resources"] = [*_resources(made), *(_made(begun, identity) for begun, identity in added if begun.urn not in known)]
    return made


def foreign(deployment: Mapping[str, Any], looked_at: Iterable[Begun]) -> list[str]:
    """Of what was looked at, the URNs of Kubernetes objects that are there but are somebody else's.

    Ours have every label that the program gave them, and a field that this provider wrote. That an object of the name was there before is
    no reason to take it over, or to delete it later.
    """
    wanted = {begun.urn: begun for begun in looked_at if begun.token.startswith(KUBERNETES) and begun.token != HELM_RELEASE}
    found = [each for each in _resources(deployment) if each["urn"] in wanted and not each.get("delete")]
    return [str(each["urn"]) for each in found if not _is_ours(each.get("outputs") or {}, wanted[str(each["urn"])].inputs)]


def without(deployment: Mapping[str, Any], urns: Sequence[str]) -> dict[str, Any]:
    """The state without some resources, on which nothing else in it depends."""
    made = copy.deepcopy(dict(deployment))
    made["resources"] = [each for each in _resources(made) if each["urn"] not in urns]
    return made


def _pending(deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deployment.get("pending_operations") or []
    return found


def _resources(deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deployment.get("resources") or []
    return found


def _made(begun: Begun, identity: str) -> dict[str, Any]:
    """The state's entry of a resource as if it had been made: a refresh fills in what it is really like.

    With outputs, so that the provider reads it as one that it knows: without them it takes it for an import, and keeps none of the inputs
    that it cannot read back.
    """
    outputs = dict(begun.inputs)
    if begun.token.startswith(KUBERNETES) and "apiVersion" in begun.inputs:
        # What the official provider keeps with each object (recordings, scenario 06 and the table of states).
        outputs |= {"__inputs": begun.inputs, "__initialApiVersion": begun.inputs["apiVersion"]}
    kept = {key: value for key, value in begun.resource.items() if key not in _LIVE_ALONE}
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


class Identifying:
    """`place` is what resource_id needs of the stack; without `clients`, boto3's own are made for the region of `place`."""

    def __init__(self, place: Mapping[str, str], clients: Clients | None = None) -> None:
        self._place = place
        self._clients = clients

    def identify(self, begun: Begun, taken: frozenset[str]) -> str | NotIdentified | None:
        """The id, None when it is certain that there is no such resource; `taken` are ids of other resources."""
        if known := resource_id(begun.token, begun.inputs, self._place):
            return known
        if not begun.token.startswith(_AWS):
            return NotIdentified()
        found = AwsSearch(self._clients or self._own_clients()).ids(begun.token, begun.inputs)
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
    Identify = Callable[[Begun, frozenset[str]], str | NotIdentified | None]

_EXISTS = "already exists"


@dataclass(frozen=True)
class Settling:
    """How a stack's state is fixed. `refresh` has the engine look at everything in it."""

    stack: automation.Stack
    refresh: Callable[[], None]
    tell: Tell

    def settle(self, identify: Identify, answers: Mapping[str, str | None]) -> None:
        """After an interruption the state may not know whether something was created. Looking at what there is settles it.

        `answers` go before `identify`: ids by URN, None for what was not made. Raises ExplainedError for answers about what was not begun,
        and for what `identify` cannot answer, with what to do; the state is as it was then.
        """
        exported = self.stack.export_stack()
        deployment = exported.deployment or {}
        begun = begun_in(deployment)
        _require_asked_for(self.stack.name, answers, begun)
        if not is_open(deployment):
            return
        self.tell(f"An earlier run was interrupted; checking first what it left behind ({len(begun)} begun).\n")
        made = read_back(deployment, lambda each, taken: answers[each.urn] if each.urn in answers else identify(each, taken))
        if made.unclear:
            raise _unclear(self.stack.name, made.unclear)
        self._look(automation.Deployment(version=exported.version, deployment=made.deployment), made.looked_at)

    def take_in(self, existing: Iterable[Begun]) -> set[str]:
        """Takes objects into the state that are this stack's own and that it does not know; returns their URNs."""
        named = [(each, identity) for each in existing if (identity := resource_id(each.token, each.inputs, {}))]
        if not named:
            return set()
        exported = self.stack.export_stack()
        deployment = with_resources(exported.deployment or {}, named)
        self.tell(f"{len(named)} of the objects exist, and the state does not know them; looking whether they are this stack's own.\n")
        wanted = [each for each, _ in named]
        return {each.urn for each in wanted} & self._look(automation.Deployment(version=exported.version, deployment=deployment), wanted)

    def _look(self, state: automation.Deployment, looked_at: Iterable[Begun]) -> set[str]:
        """Puts `state` in the place of the stack's, refreshes it, and takes out what is somebody else's. Returns the URNs in it then."""
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
    """Hears the engine's events, and keeps the Kubernetes objects that could not be created because they are there.

    Objects of a cluster alone: a cloud's labels do not say of which stack something is.
    """

    def __init__(self, hear: Hear | None) -> None:
        self._hear = hear
        self._begun: dict[str, Begun] = {}
        self.found: list[Begun] = []

    def hear(self, event: automation.EngineEvent) -> None:
        """Takes note of one event, and passes it on."""
        if self._hear is not None:
            self._hear(event)
        step = event.resource_pre_event
        if step is not None and step.metadata.new is not None and step.metadata.new.custom:
            new = step.metadata.new
            kept = {"urn": new.urn, "type": new.type, "inputs": dict(new.inputs or {}), "parent": new.parent, "provider": new.provider}
            self._begun[new.urn] = Begun({"custom": True, **{key: value for key, value in kept.items() if value}})
        told = event.diagnostic_event
        if told is not None and told.urn and told.severity == "error" and _EXISTS in told.message:
            begun = self._begun.get(told.urn)
            if begun is not None and begun.token.startswith(KUBERNETES) and begun.token != HELM_RELEASE and begun not in self.found:
                self.found.append(begun)


def _require_asked_for(stack: str, answers: Iterable[str], begun: Iterable[Begun]) -> None:
    open_urns = [each.urn for each in begun]
    if unknown := [urn for urn in answers if urn not in open_urns]:
        raise ExplainedError(
            f"--made or --not-made names something that no interrupted run of stack {stack} had begun to create: {', '.join(unknown)}.",
            "name one of those below, or leave the option out." if open_urns else "leave the option out; nothing is open.",
            evidence=tuple(open_urns),
            exit_code=ExitCode.BAD_USAGE,
        )


def _unclear(stack: str, unclear: Iterable[Begun]) -> ExplainedError:
    told = tuple(f"{each.token} {each.urn.rpartition('::')[2]}: --made '{each.urn}=ID' or --not-made '{each.urn}'" for each in unclear)
    return ExplainedError(
        f"an earlier run of stack {stack} was interrupted while it created resources that cannot be found by name.",
        "check in the cloud's console or command line whether each exists, and run the same command again with the matching option of "
        "the two.",
        evidence=told,
    )
