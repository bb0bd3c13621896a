"""`flexspot audit` without its command line: from lists of a cluster's objects to findings with their cost."""

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
    is_declared,
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

    from flexspot.infra.audit.cluster_lists import ClusterListing, ClusterLists, Lack
    from flexspot.infra.audit.live_cluster import Waste
    from flexspot.policies.inventory.reading.source import ObjectSource
    from flexspot.policies.judging import Rule
    from flexspot.policies.lint.configuration import Configuration


OF_TEXTS: Final = frozenset({"unknown-field", "deprecated-kueue-api"})
"""Rules about how an object is written. The API server has accepted it and returns it in the requested version."""

KUEUE_ADDS: Final = frozenset({"missing-toleration"})
"""Rules about what Kueue adds when it admits work. Pending work does not have it yet."""

_SEVERITY: Final = {IDLE: Severity.HIGH, UNTAINTED: Severity.HIGH, DEAR: Severity.MEDIUM}
_CODES: Final = {IDLE: "FLX801", UNTAINTED: "FLX802", DEAR: "FLX803"}


@dataclass(frozen=True)
class Audited:
    """One finding of an audit."""

    finding: Finding
    usd_per_month: Decimal | None
    """Its cost. None if not known."""
    binding: bool
    """True if it fails the run."""
    nodes: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, Decimal, str, str]:
        """Sort key: the most severe first, then the most expensive."""
        rank = GRAVEST_FIRST.index(self.finding.severity)
        return rank, -(self.usd_per_month or Decimal(0)), self.finding.code, str(self.finding.object)


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit."""

    findings: tuple[Audited, ...]
    undecided: tuple[Finding, ...]
    listing: ClusterListing
    """The parts of the cluster that were listed, and those that were not."""
    objects: int
    pods: int
    nodes: int
    gpus: int
    suppressed: int = 0
    unlisted: tuple[str, ...] = ()
    """Kinds of own rules that an audit does not list."""
    managed: int = 0
    """Number of objects in the cloud's own namespaces."""
    manifests: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    """Manifests of the objects with findings, by identity."""

    @property
    def lacking(self) -> list[Lack]:
        """Missing permissions."""
        return self.listing.lacking

    @property
    def failed(self) -> bool:
        """True if a finding fails the run."""
        return any(each.binding for each in self.findings)


@dataclass
class _ListedObjects:
    """Listed nodes with their pods, and manifests of declared objects."""

    occupancy: Occupancy = field(default_factory=Occupancy)
    written: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Manifests as users write them."""
    count: int = 0

    def add(self, served: dict[str, Any]) -> None:
        """Add an object as the API server returns it. Only the occupancy of pods that controllers create is kept."""
        self.count += 1
        kind = served["apiVersion"], served["kind"]
        if kind == ("v1", "Node"):
            self.occupancy.add_node(served)
            return
        if kind == ("v1", "Pod"):
            self.occupancy.add_pod(served)
        if is_declared(served):
            self.written.append(as_written(served))


def audit(lists: ClusterLists, configuration: Configuration, *, idle_after: timedelta = NEW) -> AuditReport:
    """Judge the objects of a cluster. A node without work counts as idle when it is older than `idle_after`.

    Raises ExplainedError for a cluster that does not answer.
    """
    gathered = _ListedObjects()
    for each in lists.objects():
        gathered.add(each)
    nodes, listing = gathered.occupancy.settled(), lists.listing
    sources = [from_manifest(each) for each in gathered.written]
    pools = live_pools(nodes, listing)
    everything = [*sources, *_definitions(listing), *pools.sources]
    judged = judge_all(everything, _rules(configuration), configuration.running, closed=listing.complete, read=pools.read)
    findings: list[Audited] = []
    undecided: list[Finding] = []
    suppressed = managed = 0
    manifests: dict[str, dict[str, Any]] = {}
    for source, manifest, listed in zip(sources, gathered.written, judged, strict=False):
        own = is_managed(source.identity.namespace) and source.identity.namespace not in listing.namespaces
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
        wasted = waste_of(nodes, shipped_prices(), pods_known=listing.lists_all("pods"), idle_after=idle_after)
        findings += [_wasted(each, configuration) for each in wasted]
    return AuditReport(
        findings=tuple(sorted(findings, key=lambda each: each.order)),
        undecided=tuple(sorted(undecided, key=lambda each: (not is_defect(each), each.code, str(each.object)))),
        listing=listing,
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
    """Return the kinds of own rules that are not listed, spelled as in the rules."""
    judging = {each.name for each in _rules(configuration)}
    kinds = {kind for rule in configuration.own if rule.name in judging for kind in rule.expressions.kinds}
    listed = [(group, kind) for group, of_group in wanted_kinds().items() for kind in of_group]
    return tuple(sorted(kind for kind in kinds if not any(is_of_kind(kind, *each) for each in listed)))


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding once, even if it applies to several pod templates."""
    return list({(each.rule, each.verdict, each.message): each for each in findings}.values())


def _is_suspended(manifest: Mapping[str, Any]) -> bool:
    """Return whether the manifest is as the user wrote it: Kueue has not admitted it, or does not manage it."""
    labels = manifest["metadata"].get("labels") or {}
    spec = manifest.get("spec") or {}
    return "kueue.x-k8s.io/queue-name" not in labels or spec.get("suspend") is not False


def _definitions(listing: ClusterListing) -> list[ObjectSource]:
    """Return minimal definitions of the kinds that rules require, for served API groups. The real ones are large and add nothing."""
    plurals = {"autoscaling.x-k8s.io": "provisioningrequests"}
    names = [f"{plural}.{group}" for group, plural in plurals.items() if group in listing.groups]
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return [from_manifest({**definition, "metadata": {"name": name}}) for name in names]


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
