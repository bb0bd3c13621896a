"""Checks that the tests of all cloud stacks make of a deployment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine_steps import Operation, steps
from program_declarations import as_shipped, declared

from flexspot.infra.deployment.api_refusals import known_refusals
from flexspot.lab.cluster import Cluster, condition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from subprocess import CompletedProcess

    from cloud_folder import Event
    from cloud_world import CloudWorld

    from flexspot.lab.cluster import KubeObject

Counts = dict[str, int]


def counted(done: CompletedProcess[str]) -> Counts:
    """Return the counts in the last line: `223 were created, 6 were updated`; nothing if it reports no change."""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    lines = [line for line in done.stdout.splitlines() if re.match(r"(\d+ were (created|updated|deleted|replaced)|no change)", line)]
    return {word: int(number) for number, word in re.findall(r"(\d+) were (\w+)", lines[-1])}


def goes_up(world: CloudWorld, stack: str) -> int:
    """Deploy a shipped stack into an empty world and check that it matches the declaration. Return how many resources were created."""
    world.cloud.forget_events()
    created = counted(world.flexspot("up", "-s", stack, "--yes"))
    assert created.keys() == {"created"}
    assert names_of(world, stack) == planned(stack)
    assert existing(world, stack) == planned(stack)
    assert refusals(world) == []
    wait_until_queues_are_active(world)
    return created["created"]


def wait_until_queues_are_active(world: CloudWorld) -> None:
    """Return once every Kueue queue is active. A missing flavor or check keeps a queue inactive."""

    def all_active(queues: list[KubeObject]) -> bool:
        return bool(queues) and all(condition(each, "Active") for each in queues)

    on_plane = Cluster(Path(world.cloud.settings["control_plane"]["kubeconfig"]))
    on_plane.wait_for("kueue.x-k8s.io/v1beta2/ClusterQueue", all_active, "the ClusterQueues to be active")


def is_refused_before_anything(
    world: CloudWorld, stack: str, rules: set[str], settings: dict[str, Any], *, seem_replaced: frozenset[str] = frozenset()
) -> None:
    """Check that rules of the cloud's API refuse these settings before any change, and that the engine's preview matches the model.

    `seem_replaced` are replacements that only a preview shows, because an id becomes known during the run. The model follows the run.
    """
    before = world.settings(stack)
    with world.changed(stack, **settings):
        world.cloud.forget_events()
        done = world.flexspot("up", "-s", stack, "--yes")
        after = world.settings(stack)

    assert done.returncode == 1, done.stdout[-4000:] + done.stderr[-4000:]
    assert {rule for rule in known_refusals() if f"({rule}: " in done.stderr} == rules, done.stderr
    assert [event for event in world.cloud.events() if event.operation in {"create", "update", "delete"}] == []
    shown, wanted = operations(done.stdout), modelled(stack, before, after)
    differing = {name: (shown.get(name), wanted.get(name)) for name in shown | wanted if shown.get(name) != wanted.get(name)}
    assert differing == dict.fromkeys(seem_replaced, (Operation.REPLACE, None)), f"(the engine, our model of it): {differing}"


_DISPLAYED = re.compile(
    r"^ *(?:\+\+|\+-|--|\+|~|-) +(?P<type>\S+:\S+) (?P<name>\S+) "
    r"(?P<done>create replacement|delete original|replace|create|update|delete)(?: |$)"
)
"""A line of the engine's display of a preview."""


def operations(display: str) -> dict[str, str]:
    """Return the operation on each resource as the engine shows it, by `type name`, without components."""
    found: dict[str, str] = {}
    for line in display.splitlines():
        if (match := _DISPLAYED.match(line)) and not match["type"].startswith(("flexspot:", "pulumi:")):
            replaced = match["done"] in {"create replacement", "delete original", "replace"}
            resource = f"{match['type']} {match['name']}"
            if found.get(resource) != Operation.REPLACE:
                found[resource] = Operation.REPLACE if replaced else match["done"]
    return found


def modelled(stack: str, before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """Return the same as modelled by engine_steps, which judges every edit of every setting."""
    run = steps(*(declared(stack, settings, there=True) for settings in (before, after)))
    return {_displayed(step.name): step.operation for step in run.steps if not step.name.startswith("pulumi:")}


def _displayed(name: str) -> str:
    """Return `aws:ec2:Subnet x` for `aws:ec2/subnet:Subnet x`: the engine omits the part of the module that repeats the type."""
    return re.sub(r"/(\w+):(\w+) ", lambda found: f":{found[2]} " if found[1].lower() == found[2].lower() else found[0], name)


def planned(stack: str) -> set[str]:
    """Return all resources that the program declares for a shipped stack, as `type name`, without components and providers."""
    ours = ("flexspot:", "pulumi:")
    return {f"{each.type} {each.name}" for each in as_shipped(stack).made.values() if not each.type.startswith(ours)}


def names_of(world: CloudWorld, stack: str) -> set[str]:
    """Return all resources in a stack's state, as `type name`."""
    return {f"{each['type']} {urn.rpartition('::')[2]}" for urn, each in world.resources(stack).items()}


def existing(world: CloudWorld, stack: str) -> set[str]:
    """Return a stack's resources in the cloud and the control plane, as `type name`, by the names in its state."""
    clouds = world.held()
    assert sorted(set(clouds)) == clouds, "something was created twice"
    there = world.objects()
    objects = {
        f"{each['type']} {urn.rpartition('::')[2]}"
        for urn, each in world.resources(stack).items()
        if each["type"].startswith("kubernetes:") and "helm.sh" not in each["type"] and f"{_kind(each)} {each['id']}" in there
    }
    return {*clouds, *objects}


def _kind(resource: dict[str, dict[str, str]]) -> str:
    outputs = resource["outputs"]
    return f"{outputs['apiVersion']}/{outputs['kind']}"


class Order:
    """The order of events, by the names of resources in Pulumi."""

    def __init__(self, events: Iterable[Event], operation: str) -> None:
        events = list(events)
        chosen = [(place, event) for place, event in enumerate(events) if event.operation == operation]
        self.started = {event.name: place for place, event in chosen if event.phase == "begun"}
        self.done = {event.name: place for place, event in chosen if event.phase == "done"}

    def assert_after(self, later: str, *earlier: str) -> None:
        """Check that each of `earlier` was done before `later` was started."""
        late = [name for name in earlier if self.done[name] > self.started[later]]
        assert late == [], f"{later} was started before these were done: {late}"

    def matching(self, pattern: str) -> list[str]:
        """Return the names that match a pattern."""
        return [name for name in self.done if re.fullmatch(pattern, name)]


def programs_run(world: CloudWorld) -> set[str]:
    """Return the programs that gave credentials, as the program's kubeconfig called them."""
    return {event.detail for event in world.cloud.events() if event.operation == "credentials" and event.phase == "done"}


def refusals(world: CloudWorld) -> list[str]:
    """Return the refusals by a cloud or a cluster."""
    return [f"{event.operation} {event.name}: {event.detail}" for event in world.cloud.events() if event.phase == "refused"]
