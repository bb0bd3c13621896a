"""The whole of `flexspot audit` without its command line: from lists of a cluster to findings with what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.values.verdict import ObjectIdentity, Severity, Verdict
from flexspot.infra.audit.cluster_lists import wanted_kinds
from flexspot.infra.audit.live_cluster import (
    DEAR,
    IDLE,
    NEW,
    UNTAINTED,
    Occupancy,
    as_written,
    is_anybodys,
    is_managed,
    live_pools,
    shipped_prices,
    waste_of,
)
from flexspot.policies.core import is_defect, judge_all
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import Level
from flexspot.policies.lint.report import GRAVEST_FIRST
from flexspot.policies.own_rules import is_of_kind
from flexspot.policies.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from flexspot.infra.audit.cluster_lists import ClusterLists, Lack, Listed
    from flexspot.infra.audit.live_cluster import Waste
    from flexspot.policies.inventory.reading.source import ObjectSource
    from flexspot.policies.judging import Rule
    from flexspot.policies.lint.configuration import Configuration


OF_TEXTS: Final = frozenset({"unknown-field", "deprecated-kueue-api"})
"""Rules on how an object is written: the API server has taken it, and gives it back in the version that it is asked for."""

KUEUE_ADDS: Final = frozenset({"missing-toleration"})
"""Rules about what Kueue adds to work that it admits: of work that waits, it is not there yet."""

_SEVERITY: Final = {IDLE: Severity.HIGH, UNTAINTED: Severity.HIGH, DEAR: Severity.MEDIUM}
_CODES: Final = {IDLE: "FLX801", UNTAINTED: "FLX802", DEAR: "FLX803"}


@dataclass(frozen=True)
class Audited:
    """One finding, with what it costs a month in US dollars as far as that is known, and whether it fails the run."""

    finding: Finding
    usd_per_month: Decimal | None
    binding: bool
    nodes: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, Decimal, str, str]:
        """What to do first: the gravest, then the dearest."""
        rank = GRAVEST_FIRST.index(self.finding.severity)
        return rank, -(self.usd_per_month or Decimal(0)), self.finding.code, str(self.finding.object)


@dataclass(frozen=True)
class AuditReport:
    """Everything that an audit says. `told` is what was listed and what not, `managed` how many objects are the cloud's own.

    `unlisted` are kinds that own rules look at and that are not listed.
    """

    findings: tuple[Audited, ...]
    undecided: tuple[Finding, ...]
    told: Listed
    objects: int
    pods: int
    nodes: int
    gpus: int
    suppressed: int = 0
    unlisted: tuple[str, ...] = ()
    managed: int = 0
    manifests: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    """The objects that have findings, as they would be written, by identity."""

    @property
    def lacking(self) -> list[Lack]:
        """The permissions that are missing."""
        return self.told.lacking

    @property
    def failed(self) -> bool:
        """Whether a finding fails the run."""
        return any(each.binding for each in self.findings)


@dataclass
class _Gathered:
    """What was listed: nodes with what runs on them, and what somebody declared, as it would be written."""

    occupancy: Occupancy = field(default_factory=Occupancy)
    written: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    count: int = 0

    def add(self, served: dict[str, Any]) -> None:
        """One object, as it is served. Of pods that others make nothing is kept but where they run."""
        self.count += 1
        kind = served["apiVersion"], served["kind"]
        if kind == ("v1", "Node"):
            self.occupancy.add_node(served)
            return
        if kind == ("v1", "Pod"):
            self.occupancy.add_pod(served)
        if is_anybodys(served):
            self.written.append(as_written(served))


def audit(lists: ClusterLists, configuration: Configuration, *, idle_after: timedelta = NEW) -> AuditReport:
    """Judges what the cluster lists; a node may be without work for `idle_after` from when it was made.

    Raises ExplainedError for a cluster that does not answer.
    """
    gathered = _Gathered()
    for each in lists.objects():
        gathered.add(each)
    nodes, told = gathered.occupancy.settled(), lists.told
    sources = [from_manifest(each) for each in gathered.written]
    pools = live_pools(nodes, told)
    everything = [*sources, *_definitions(told), *pools.sources]
    judged = judge_all(everything, _rules(configuration), configuration.running, closed=told.complete, read=pools.read)
    findings: list[Audited] = []
    undecided: list[Finding] = []
    suppressed = managed = 0
    manifests: dict[str, dict[str, Any]] = {}
    for source, manifest, listed in zip(sources, gathered.written, judged, strict=False):
        own = is_managed(source.identity.namespace) and source.identity.namespace not in told.namespaces
        managed += own
        for finding in () if own else _once(listed):
            if finding.rule in KUEUE_ADDS and not _is_suspended(manifest):
                continue
            if finding.verdict is Verdict.FAIL:
                findings.append(Audited(finding, None, configuration.binding(finding.rule, finding.severity, "")))
                manifests[str(source.identity)] = manifest
            elif finding.verdict is Verdict.UNKNOWN:
                undecided.append(finding)
            suppressed += finding.verdict is Verdict.SUPPRESSED
    if configuration.chosen is None:
        wasted = waste_of(nodes, shipped_prices(), pods_known=told.lists_all("pods"), idle_after=idle_after)
        findings += [_wasted(each, configuration) for each in wasted]
    return AuditReport(
        findings=tuple(sorted(findings, key=lambda each: each.order)),
        undecided=tuple(sorted(undecided, key=lambda each: (not is_defect(each), each.code, str(each.object)))),
        told=told,
        objects=gathered.count,
        pods=gathered.occupancy.pods,
        nodes=len(nodes),
        gpus=int(sum(node.gpus for node in nodes)),
        suppressed=suppressed,
        unlisted=_unlisted(configuration),
        managed=managed,
        manifests=manifests,
    )


def _rules(configuration: Configuration) -> tuple[Rule, ...]:
    settings = configuration.settings
    rules = (each for each in configuration.rules_of_objects if each.name not in OF_TEXTS)
    return tuple(each for each in rules if settings.level(each) is not Level.DISABLED)


def _unlisted(configuration: Configuration) -> tuple[str, ...]:
    """The kinds of own rules none of which is listed, as they are written."""
    judging = {each.name for each in _rules(configuration)}
    kinds = {kind for rule in configuration.own if rule.name in judging for kind in rule.expressions.kinds}
    listed = [(group, kind) for group, of_group in wanted_kinds().items() for kind in of_group]
    return tuple(sorted(kind for kind in kinds if not any(is_of_kind(kind, *each) for each in listed)))


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Each once, however many pod templates it is so of."""
    return list({(each.rule, each.verdict, each.message): each for each in findings}.values())


def _is_suspended(manifest: Mapping[str, Any]) -> bool:
    """Whether Kueue has not admitted it, so that it stands as it was written; work that nobody suspends stands so, too."""
    labels = manifest["metadata"].get("labels") or {}
    spec = manifest.get("spec") or {}
    return "kueue.x-k8s.io/queue-name" not in labels or spec.get("suspend") is not False


def _definitions(told: Listed) -> list[ObjectSource]:
    """The definitions that rules ask for, as far as the API server serves their groups: they themselves are large, and say no more."""
    asked = {"autoscaling.x-k8s.io": "provisioningrequests"}
    names = [f"{plural}.{group}" for group, plural in asked.items() if group in told.groups]
    made = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return [from_manifest({**made, "metadata": {"name": name}}) for name in names]


def _wasted(waste: Waste, configuration: Configuration) -> Audited:
    word, name = waste.pool
    severity = _SEVERITY[waste.rule]
    finding = Finding(
        rule=waste.rule,
        code=_CODES[waste.rule],
        severity=severity,
        verdict=Verdict.FAIL,
        object=ObjectIdentity(api_version="v1", kind=word, name=name),
        message=waste.message,
        remediation=waste.remedy,
        page="docs/guides/audit.md",
    )
    binding = configuration.binding(waste.rule, severity, "")
    return Audited(replace(finding, page=configuration.page(finding.page)), waste.usd_per_month, binding, waste.nodes)
