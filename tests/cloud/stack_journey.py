"""What the tests of all cloud stacks ask of a deployment."""

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
    """What the last line of counts says was done: `223 were created, 6 were updated`; nothing when it says no change."""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    lines = [line for line in done.stdout.splitlines() if re.match(r"(\d+ were (created|updated|deleted|replaced)|no change)", line)]
    return {word: int(number) for number, word in re.findall(r"(\d+) were (\w+)", lines[-1])}


def goes_up(world: CloudWorld, stack: str) -> int:
    """Deploys a shipped stack into an empty world, just as it is declared; returns how many resources were created."""
    world.cloud.forget_events()
    created = counted(world.flexspot("up", "-s", stack, "--yes"))
    assert created.keys() == {"created"}
    assert names_of(world, stack) == planned(stack)
    assert made(world, stack) == planned(stack)
    assert refusals(world) == []
    wait_until_queues_are_active(world)
    return created["created"]


def wait_until_queues_are_active(world: CloudWorld) -> None:
    """Returns once Kueue has taken up every queue: what it lacks, such as a flavor or a check, keeps one inactive."""

    def all_active(queues: list[KubeObject]) -> bool:
        return bool(queues) and all(condition(each, "Active") for each in queues)

    on_plane = Cluster(Path(world.cloud.settings["control_plane"]["kubeconfig"]))
    on_plane.wait_for("kueue.x-k8s.io/v1beta2/ClusterQueue", all_active, "the ClusterQueues to be active")


def is_refused_before_anything(
    world: CloudWorld, stack: str, rules: set[str], settings: dict[str, Any], *, seem_replaced: frozenset[str] = frozenset()
) -> None:
    """These settings are refused by rules of the cloud's API before anything is changed; the engine's preview is what our model says.

    What a preview shows as replaced, because an id is known only once the run has come there, is in `seem_replaced`: the model has the run.
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
    """What becomes of each resource as the engine shows it, by `type name`; components left out."""
    found: dict[str, str] = {}
    for line in display.splitlines():
        if (match := _DISPLAYED.match(line)) and not match["type"].startswith(("flexspot:", "pulumi:")):
            replaced = match["done"] in {"create replacement", "delete original", "replace"}
            resource = f"{match['type']} {match['name']}"
            if found.get(resource) != Operation.REPLACE:
                found[resource] = Operation.REPLACE if replaced else match["done"]
    return found


def modelled(stack: str, before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """The same as the model of the engine has it, by which every edit of every setting is judged."""
    run = steps(*(declared(stack, settings, there=True) for settings in (before, after)))
    return {_displayed(step.name): step.operation for step in run.steps if not step.name.startswith("pulumi:")}


def _displayed(name: str) -> str:
    """`aws:ec2:Subnet x` of `aws:ec2/subnet:Subnet x`: the engine leaves out the module's part that repeats the type."""
    return re.sub(r"/(\w+):(\w+) ", lambda found: f":{found[2]} " if found[1].lower() == found[2].lower() else found[0], name)


def planned(stack: str) -> set[str]:
    """All resources that the program declares for a shipped stack, as `type name`, components and providers left out."""
    ours = ("flexspot:", "pulumi:")
    return {f"{each.type} {each.name}" for each in as_shipped(stack).made.values() if not each.type.startswith(ours)}


def names_of(world: CloudWorld, stack: str) -> set[str]:
    """All resources of a stack in its state, as `type name`."""
    return {f"{each['type']} {urn.rpartition('::')[2]}" for urn, each in world.resources(stack).items()}


def made(world: CloudWorld, stack: str) -> set[str]:
    """What the cloud and the control plane have of a stack, as `type name`, by the names in its state."""
    clouds = world.held()
    assert sorted(set(clouds)) == clouds, "something was made twice"
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
    """What happened before what, by the names of resources in Pulumi."""

    def __init__(self, events: Iterable[Event], operation: str) -> None:
        events = list(events)
        chosen = [(place, event) for place, event in enumerate(events) if event.operation == operation]
        self.begun = {event.name: place for place, event in chosen if event.phase == "begun"}
        self.done = {event.name: place for place, event in chosen if event.phase == "done"}

    def assert_after(self, later: str, *earlier: str) -> None:
        """Each of `earlier` was done before `later` was begun."""
        late = [name for name in earlier if self.done[name] > self.begun[later]]
        assert late == [], f"{later} was begun before these were done: {late}"

    def matching(self, pattern: str) -> list[str]:
        """The names that a pattern fits."""
        return [name for name in self.done if re.fullmatch(pattern, name)]


def programs_run(world: CloudWorld) -> set[str]:
    """The programs that gave credentials, as the kubeconfig of the program called them."""
    return {event.detail for event in world.cloud.events() if event.operation == "credentials" and event.phase == "done"}


def refusals(world: CloudWorld) -> list[str]:
    """What a cloud or a cluster refused."""
    return [f"{event.operation} {event.name}: {event.detail}" for event in world.cloud.events() if event.phase == "refused"]
