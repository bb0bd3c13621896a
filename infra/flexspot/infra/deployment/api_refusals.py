"""What only the clouds' APIs know of a change of something that is there: said by the preview, before anything is changed.

The engine asks the providers, and a provider's own code does not know these rules, so the engine would find out in the middle of a run.
The table with sources is api_refusals.yaml. A rule whose source is not verified is told, and not refused.
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
    """A rule of an API. `text` is what it answers, `words` says it to a person, `remedy` what to do instead."""

    token: str
    text: str
    words: str
    remedy: str
    source: Source


class _RulesFile(Record):
    rules: dict[str, ApiRule] = Field(min_length=1)


@cache
def known_rules() -> dict[str, ApiRule]:
    """All rules, by name."""
    return read_records(DATA, _RulesFile).rules


def known_refusals() -> dict[str, ApiRule]:
    """The rules for which `up` does not begin, by name: those whose source makes them certain. Others are told."""
    return {name: rule for name, rule in known_rules().items() if rule.source.verified}


@dataclass(frozen=True)
class InputChange:
    """What becomes of one resource: `old` inputs are None where it comes, `new` ones where it goes.

    `gone_first` says of a replacement that the old one goes before the new one comes.
    """

    token: str
    name: str
    old: Inputs | None
    new: Inputs | None
    identity: str = ""
    replaced: bool = False
    gone_first: bool = False


@dataclass(frozen=True)
class Refusal:
    """What an API will refuse: by which rule, of which resource, and in its words."""

    rule: str
    name: str
    text: str

    @property
    def words(self) -> str:
        """The refusal for a person, in a line."""
        return f"{self.name}: {known_rules()[self.rule].words} ({self.rule}: {self.text})"

    @property
    def certain(self) -> bool:
        """Whether its source makes it certain, so that `up` does not begin."""
        return self.rule in known_refusals()

    @property
    def remedy(self) -> str:
        """What to do instead."""
        return known_rules()[self.rule].remedy


def refusals(changes: Iterable[InputChange]) -> list[Refusal]:
    """What the clouds will refuse of a run, which is all its changes and the resources that stay, and what they may refuse."""
    listed = list(changes)
    subnets = [each for each in listed if each.token == SUBNET]
    found: list[Refusal] = []
    for change in listed:
        if change.new is None:
            continue
        if change.old is not None and not change.replaced:
            told = refused_changes(change.token, change.old, change.new, lambda identity: _zone_of(subnets, identity))
            found += [Refusal(rule, change.name, text) for rule, text in (*told, *doubted_changes(change.token, change.old, change.new))]
            if change.token == EKS_CLUSTER:
                found += _other_zones(change, subnets)
        elif change.token == SUBNET:
            found += _overlaps(change, subnets)
    return found


def refused_changes(token: str, old: Inputs, new: Inputs, zone_of: ZoneOf) -> Iterator[tuple[str, str]]:
    """What the API refuses of new inputs for a resource: which rule of the table, and the API's text.

    `zone_of` knows the zone of a subnet by its id, "" for one of somebody else's.
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
                yield _told("subnet-zones", *(", ".join(each) for each in zones))
    if token == NODE_POOL:
        yield from _node_class(old, new)
    if token == AWS_PROVIDER:
        accounts = [re.findall(r"\d{12}", str(each.get("allowedAccountIds"))) for each in (old, new)]
        if all(accounts) and accounts[0] != accounts[1]:
            yield _told("account", *(", ".join(each) for each in accounts))
    if token == SUBNETWORK:
        yield from _ranges(old.get("secondaryIpRanges"), new.get("secondaryIpRanges"))


def _node_class(old: Inputs, new: Inputs) -> Iterator[tuple[str, str]]:
    refs = [inputs["spec"]["template"]["spec"]["nodeClassRef"] for inputs in (old, new)]
    if _known(refs):
        before, after = (f"{each['kind']} of {each['group']}" for each in refs)
        if before != after:
            yield _told("node-class-kind", before, after)


def _version(token: str, old: object, new: object) -> Iterator[tuple[str, str]]:
    if not isinstance(old, str) or not isinstance(new, str) or not _known([old, new]):
        return
    step = int(new.rpartition(".")[2]) - int(old.rpartition(".")[2])
    if token == EKS_CLUSTER and step not in {0, 1}:
        yield _told("version", old, new)
    if token == NODE_GROUP and step < 0:
        yield _told("node-group-version", old, new)


def _size(scaling: object) -> Iterator[tuple[str, str]]:
    """Where the program ignores changes of the size, it is the one that the group has."""
    if isinstance(scaling, dict) and _known([scaling.get("minSize"), scaling.get("desiredSize")]):
        least, size = int(scaling["minSize"]), int(scaling["desiredSize"])
        if least > size:
            yield _told("node-group-size", str(size), str(least))


def _ranges(old: object, new: object) -> Iterator[tuple[str, str]]:
    if not isinstance(old, list) or not isinstance(new, list) or not _known([old, new]):
        return
    before, after = ({str(each["rangeName"]): str(each["ipCidrRange"]) for each in ranges} for ranges in (old, new))
    for number, (name, cidr) in enumerate(before.items()):
        if name in after and after[name] != cidr:
            yield _told("range-modified", str(number), after[name])
    added, removed = ([ranges[name] for name in ranges.keys() - others.keys()] for ranges, others in ((after, before), (before, after)))
    if added and removed:
        yield _told("ranges-swapped", ", ".join(sorted(removed)), ", ".join(sorted(added)))


def doubted_changes(token: str, old: Inputs, new: Inputs) -> Iterator[tuple[str, str]]:
    """What a cloud is said to refuse, or to leave undone, by a source that nobody here could look at again."""
    # The program tells the engine of it as well, for who runs Pulumi's own command.
    if token == GKE_CLUSTER and (removed := limits_that_go(old, new)):
        yield _told("gpu-limit-removed", ", ".join(removed), "")


def _other_zones(cluster: InputChange, subnets: list[InputChange]) -> Iterator[Refusal]:
    """Where a preview does not know the cluster's new subnets: those that come under names like the old ones', but for the zone."""
    assert cluster.old is not None and cluster.new is not None  # noqa: S101, PT018 -- tells the type checker what was checked
    old, new = (inputs["vpcConfig"]["subnetIds"] for inputs in (cluster.old, cluster.new))
    if _known(new) or not _known(old):
        return
    had = [each for each in subnets if each.old is not None and each.identity in old]
    alike = {each.name.removesuffix(_zone(each.old or {})) for each in had}
    zones = {_zone(each.old or {}) for each in had}
    comes = {_zone(each.new) for each in subnets if each.new is not None and each.name.removesuffix(_zone(each.new)) in alike}
    if comes and zones != comes:
        yield Refusal("subnet-zones", cluster.name, _told("subnet-zones", ", ".join(sorted(zones)), ", ".join(sorted(comes)))[1])


def _overlaps(made: InputChange, subnets: list[InputChange]) -> Iterator[Refusal]:
    """A subnet that comes where an old one's range still is; what goes for good goes last."""
    assert made.new is not None  # noqa: S101 -- tells the type checker what was checked
    vpc, cidr = made.new.get("vpcId"), made.new.get("cidrBlock")
    if not isinstance(cidr, str) or not _known([vpc, cidr]):
        return
    for each in subnets:
        if each.old is None or each.gone_first or each.old.get("vpcId") != vpc:
            continue
        if IPv4Network(cidr).overlaps(IPv4Network(each.old["cidrBlock"])):
            yield Refusal("subnet-overlap", made.name, _told("subnet-overlap", "", cidr)[1])
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


def _told(rule: str, before: str, after: str) -> tuple[str, str]:
    return rule, known_rules()[rule].text.format(before=before, after=after)


_COMES = {"create", "create-replacement"}
_STAYS = {"same", "update"}
_GOES = {"delete", "delete-replaced"}


@dataclass
class ApiRefusals:
    """Hears the engine's events of a preview, and keeps what becomes of the resources that rules ask of."""

    _changes: dict[str, InputChange] = field(default_factory=dict[str, InputChange])

    def hear(self, event: EngineEvent) -> None:
        """Takes note of one event."""
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
        """What the clouds will refuse, or may."""
        return refusals(self._changes.values())


def check_tried(rules: Iterable[str]) -> None:
    """Raises ExplainedError, as bad usage, for a rule to try that is none."""
    for rule in rules:
        if rule not in known_refusals():
            remedy = f"name a rule as the refusal shows it: {', '.join(known_refusals())}"
            raise ExplainedError(f"{OPTION} is {rule}, which is not a rule of a cloud's API.", remedy, exit_code=ExitCode.BAD_USAGE)


def refusal(found: Iterable[Refusal], tried: Iterable[str]) -> ExplainedError | None:
    """Why `up` does not begin: a cloud will certainly refuse a part of it, and what comes before that part would be done; None otherwise.

    `tried` are rules that a person wants to see refused by the cloud itself.
    """
    left = [each for each in found if each.certain and each.rule not in set(tried)]
    if not left:
        return None
    remedies = "; ".join(dict.fromkeys(each.remedy for each in left))
    options = " ".join(dict.fromkeys(f"{OPTION} {each.rule}" for each in left))
    return ExplainedError(
        "the cloud would refuse this partway. Nothing was changed.",
        f"{remedies}. To try anyway, run the same command with {options}",
        evidence=tuple(each.words for each in left),
    )
