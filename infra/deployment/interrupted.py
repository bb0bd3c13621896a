"""What an interrupted run left open in the state, and how it is read back instead of forgotten.

The engine notes each step before it begins and takes the note away when it is over. After an interruption a note of a creation says that
the resource may be there. `pulumi refresh` looks only at what has an id, and with `--clear-pending-creates` it forgets the rest: the next
`up` then fails with "already exists", and `destroy` leaves it behind. Here each such resource is put into the state under the id that it
has if it was made, and a refresh finds out whether it is there: the engine drops what is not. (`pulumi refresh --import-pending-creates`
of 3.259 only renames the note.)
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from infra.deployment.resource_ids import HELM_RELEASE, KUBERNETES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
    made["pending_operations"] = []
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
