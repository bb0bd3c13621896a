"""Reading back what a state does not know, with the engine: after an interruption, and where `up` meets an object that is there already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pulumi import automation

from capacity.values.errors import ExitCode, ExplainedError
from infra.deployment.interrupted import (
    Begun,
    NotIdentified,
    begun_in,
    foreign,
    is_open,
    read_back,
    with_resources,
    without,
)
from infra.deployment.resource_ids import HELM_RELEASE, KUBERNETES, resource_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Tell = Callable[[str], None]
    Hear = Callable[[automation.EngineEvent], None]
    Identify = Callable[[Begun, frozenset[str]], str | NotIdentified | None]

_EXISTS = "already exists"


@dataclass(frozen=True)
class Settling:
    """How a stack's state is mended. `refresh` has the engine look at everything in it."""

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
        self.tell(f"An earlier run was interrupted; looking first at what it left behind ({len(begun)} begun).\n")
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
            self.tell(f"Not this stack's own, and left alone: {', '.join(each.rpartition('::')[2] for each in others)}.\n")
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
            f"--made or --not-made names what no interrupted run of stack {stack} had begun to create: {', '.join(unknown)}.",
            "name one of those below, or leave the option out." if open_urns else "leave the option out; nothing is open.",
            evidence=tuple(open_urns),
            exit_code=ExitCode.BAD_USAGE,
        )


def _unclear(stack: str, unclear: Iterable[Begun]) -> ExplainedError:
    told = tuple(f"{each.token} {each.urn.rpartition('::')[2]}: --made '{each.urn}=ID' or --not-made '{each.urn}'" for each in unclear)
    return ExplainedError(
        f"an earlier run of stack {stack} was interrupted while it created what cannot be found again by its name.",
        "look in the cloud's console or with its command line whether each is there, and run the same command again with the option of the "
        "two that says so.",
        evidence=told,
    )
