"""Changes that only a cloud's API rejects, found in the preview before anything is changed.

The provider's own code does not know these rules, so the engine would fail in the middle of a run. The table with sources is
api_refusals.yaml. A rule whose source is not verified causes a warning, not a refusal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, Source, read_records
from flexspot.capacity.catalog.gke_limits import limits_that_go
from flexspot.capacity.values.engine_marks import UNKNOWNS
from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pulumi.automation import EngineEvent

    ZoneOf = Callable[[str], str]
    Inputs = Mapping[str, Any]

DATA = Path(__file__).with_name("api_refusals.yaml")

EKS_CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
SUBNET = "aws:ec2/subnet:Subnet"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
GKE_CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
AWS_PROVIDER = "pulumi:providers:aws"

OPTION = "--try-refused"


class ApiRule(Record):
    """A rule of a cloud's API."""

    token: str
    text: str
    """The API's error message."""
    words: str
    """The rule in words for a person."""
    remedy: str
    """Action to take instead."""
    source: Source


class _RulesFile(Record):
    rules: dict[str, ApiRule] = Field(min_length=1)


@cache
def known_rules() -> dict[str, ApiRule]:
    """Return all rules by name."""
    return read_records(DATA, _RulesFile).rules


def known_refusals() -> dict[str, ApiRule]:
    """Return the rules that `up` refuses to start for, by name: those with a verified source. The other rules cause warnings."""
    return {name: rule for name, rule in known_rules().items() if rule.source.verified}


@dataclass(frozen=True)
class InputChange:
    """The planned change of one resource."""

    token: str
    name: str
    old: Inputs | None
    """Inputs before the run. None if the resource is created."""
    new: Inputs | None
    """Inputs after the run. None if the resource is deleted."""
    identity: str = ""
    replaced: bool = False
    gone_first: bool = False
    """True if a replacement deletes the old resource before it creates the new one."""


@dataclass(frozen=True)
class Refusal:
    """A change that an API will reject: the rule, the resource's name, and the API's error message."""

    rule: str
    name: str
    text: str

    @property
    def words(self) -> str:
        """The refusal for a person, in one line."""
        return f"{self.name}: {known_rules()[self.rule].words} ({self.rule}: {self.text})"

    @property
    def certain(self) -> bool:
        """True if the rule's source is verified, so that `up` does not start."""
        return self.rule in known_refusals()

    @property
    def remedy(self) -> str:
        """Action to take instead."""
        return known_rules()[self.rule].remedy


def refusals(changes: Iterable[InputChange]) -> list[Refusal]:
    """Return the changes of a run that the clouds will or may reject. `changes` includes the resources that stay the same."""
    listed = list(changes)
    subnets = [each for each in listed if each.token == SUBNET]
    found: list[Refusal] = []
    for change in listed:
        if change.new is None:
            continue
        if change.old is not None and not change.replaced:
            texts = refused_changes(change.token, change.old, change.new, lambda identity: _zone_of(subnets, identity))
            found += [Refusal(rule, change.name, text) for rule, text in (*texts, *doubted_changes(change.token, change.old, change.new))]
            if change.token == EKS_CLUSTER:
                found += _other_zones(change, subnets)
        elif change.token == SUBNET:
            found += _overlaps(change, subnets)
    return found


def refused_changes(token: str, old: Inputs, new: Inputs, zone_of: ZoneOf) -> Iterator[tuple[str, str]]:
    """Yield the API rules that an update violates, each with the API's error message.

    `zone_of` returns the zone of a subnet by its id, and "" for a subnet that is not in the stack.
    """
    if token in {EKS_CLUSTER, NODE_GROUP}:
        yield from _version(token, old.get("version"), new.get("version"))
    if token == NODE_GROUP:
        yield from _size(new.get("scalingConfig"))
    if token == EKS_CLUSTER:
        subnets = [inputs["vpcConfig"]["subnetIds"] for inputs in (old, new)]
        if _known(subnets):
            zones = [sorted({zone_of(each) for each in those}) for those in subnets]
            if zones[0] != zones[1] and "" not in (*zones[0], *zones[1]):
                yield _with_text("subnet-zones", *(", ".join(each) for each in zones))
    if token == NODE_POOL:
        yield from _node_class(old, new)
    if token == AWS_PROVIDER:
        accounts = [re.findall(r"\d{12}", str(each.get("allowedAccountIds"))) for each in (old, new)]
        if all(accounts) and accounts[0] != accounts[1]:
            yield _with_text("account", *(", ".join(each) for each in accounts))
    if token == SUBNETWORK:
        yield from _ranges(old.get("secondaryIpRanges"), new.get("secondaryIpRanges"))


def _node_class(old: Inputs, new: Inputs) -> Iterator[tuple[str, str]]:
    refs = [inputs["spec"]["template"]["spec"]["nodeClassRef"] for inputs in (old, new)]
    if _known(refs):
        before, after = (f"{each['kind']} of {each['group']}" for each in refs)
        if before != after:
            yield _with_text("node-class-kind", before, after)


def _version(token: str, old: object, new: object) -> Iterator[tuple[str, str]]:
    if not isinstance(old, str) or not isinstance(new, str) or not _known([old, new]):
        return
    step = int(new.rpartition(".")[2]) - int(old.rpartition(".")[2])
    if token == EKS_CLUSTER and step not in {0, 1}:
        yield _with_text("version", old, new)
    if token == NODE_GROUP and step < 0:
        yield _with_text("node-group-version", old, new)


def _size(scaling: object) -> Iterator[tuple[str, str]]:
    """Check the node group's size. Where the program ignores changes of the size, the inputs contain the group's present one."""
    if isinstance(scaling, dict) and _known([scaling.get("minSize"), scaling.get("desiredSize")]):
        least, size = int(scaling["minSize"]), int(scaling["desiredSize"])
        if least > size:
            yield _with_text("node-group-size", str(size), str(least))


def _ranges(old: object, new: object) -> Iterator[tuple[str, str]]:
    if not isinstance(old, list) or not isinstance(new, list) or not _known([old, new]):
        return
    before, after = ({str(each["rangeName"]): str(each["ipCidrRange"]) for each in ranges} for ranges in (old, new))
    for number, (name, cidr) in enumerate(before.items()):
        if name in after and after[name] != cidr:
            yield _with_text("range-modified", str(number), after[name])
    added, removed = ([ranges[name] for name in ranges.keys() - others.keys()] for ranges, others in ((after, before), (before, after)))
    if added and removed:
        yield _with_text("ranges-swapped", ", ".join(sorted(removed)), ", ".join(sorted(added)))


def doubted_changes(token: str, old: Inputs, new: Inputs) -> Iterator[tuple[str, str]]:
    """Yield changes that a cloud rejects or does not carry out according to a source that is not verified."""
    # The program itself also warns the engine about this, for people who run the pulumi command directly.
    if token == GKE_CLUSTER and (removed := limits_that_go(old, new)):
        yield _with_text("gpu-limit-removed", ", ".join(removed), "")


def _other_zones(cluster: InputChange, subnets: list[InputChange]) -> Iterator[Refusal]:
    """Yield a refusal if the new subnets are in other zones than the old ones.

    For previews, which do not know the ids of new subnets. Old and new are matched by name without the zone.
    """
    assert cluster.old is not None and cluster.new is not None  # noqa: S101, PT018 -- tells the type checker what was checked
    old, new = (inputs["vpcConfig"]["subnetIds"] for inputs in (cluster.old, cluster.new))
    if _known(new) or not _known(old):
        return
    had = [each for each in subnets if each.old is not None and each.identity in old]
    alike = {each.name.removesuffix(_zone(each.old or {})) for each in had}
    zones = {_zone(each.old or {}) for each in had}
    comes = {_zone(each.new) for each in subnets if each.new is not None and each.name.removesuffix(_zone(each.new)) in alike}
    if comes and zones != comes:
        yield Refusal("subnet-zones", cluster.name, _with_text("subnet-zones", ", ".join(sorted(zones)), ", ".join(sorted(comes)))[1])


def _overlaps(created: InputChange, subnets: list[InputChange]) -> Iterator[Refusal]:
    """Yield a refusal if a new subnet's range overlaps that of an old one. The engine deletes old subnets last."""
    assert created.new is not None  # noqa: S101 -- tells the type checker what was checked
    vpc, cidr = created.new.get("vpcId"), created.new.get("cidrBlock")
    if not isinstance(cidr, str) or not _known([vpc, cidr]):
        return
    for each in subnets:
        if each.old is None or each.gone_first or each.old.get("vpcId") != vpc:
            continue
        if IPv4Network(cidr).overlaps(IPv4Network(each.old["cidrBlock"])):
            yield Refusal("subnet-overlap", created.name, _with_text("subnet-overlap", "", cidr)[1])
            return


def _zone_of(subnets: list[InputChange], identity: str) -> str:
    for each in subnets:
        if each.identity == identity and (inputs := each.new or each.old):
            return _zone(inputs)
    return ""


def _zone(subnet: Inputs) -> str:
    return str(subnet.get("availabilityZone") or subnet.get("availabilityZoneId") or "")


def _known(value: object) -> bool:
    if isinstance(value, list):
        return all(_known(each) for each in value)
    return value is not None and not (isinstance(value, str) and value in UNKNOWNS)


def _with_text(rule: str, before: str, after: str) -> tuple[str, str]:
    return rule, known_rules()[rule].text.format(before=before, after=after)


_COMES = {"create", "create-replacement"}
_STAYS = {"same", "update"}
_GOES = {"delete", "delete-replaced"}


@dataclass
class ApiRefusals:
    """Collects, from the events of a preview, the changes of resources that the rules apply to."""

    _changes: dict[str, InputChange] = field(default_factory=dict[str, InputChange])

    def hear(self, event: EngineEvent) -> None:
        """Record one event."""
        if event.resource_pre_event is None:
            return
        step = event.resource_pre_event.metadata
        op = str(getattr(step.op, "value", step.op))
        token = step.urn.split("::")[2].rpartition("$")[2]
        if token not in {each.token for each in known_rules().values()} or op not in _COMES | _STAYS | _GOES:
            return
        before = self._changes.get(step.urn)
        old = step.old.inputs if step.old is not None and op != "create" else before.old if before else None
        new = step.new.inputs if step.new is not None and op not in _GOES else before.new if before else None
        replaced = op in {"create-replacement", "delete-replaced"} or (before is not None and before.replaced)
        gone_first = (op == "delete-replaced" and before is None) or (before is not None and before.gone_first)
        identity = (step.old.id if step.old is not None else "") or (before.identity if before else "")
        self._changes[step.urn] = InputChange(token, step.urn.rpartition("::")[2], old, new, identity, replaced, gone_first)

    @property
    def found(self) -> list[Refusal]:
        """Changes that the clouds will or may reject."""
        return refusals(self._changes.values())


def check_tried(rules: Iterable[str]) -> None:
    """Raise ExplainedError (bad usage) for a rule in `--try-refused` that does not exist."""
    for rule in rules:
        if rule not in known_refusals():
            remedy = f"name a rule as the refusal shows it: {', '.join(known_refusals())}."
            raise ExplainedError(f"{OPTION}: {rule} is not a rule of a cloud's API.", remedy, exit_code=ExitCode.BAD_USAGE)


def refusal(found: Iterable[Refusal], tried: Iterable[str]) -> ExplainedError | None:
    """Return an error if a cloud will certainly reject a part of the run, after earlier parts were done. Otherwise return None.

    `tried` are rules that the user chose to ignore, so that the cloud itself decides.
    """
    left = [each for each in found if each.certain and each.rule not in set(tried)]
    if not left:
        return None
    remedies = "; ".join(dict.fromkeys(each.remedy for each in left))
    options = " ".join(dict.fromkeys(f"{OPTION} {each.rule}" for each in left))
    return ExplainedError(
        "the cloud would refuse this change halfway, after other changes. The run was not started, and nothing was changed.",
        f"{remedies}. To try anyway, run the same command with {options}",
        evidence=tuple(each.words for each in left),
    )
