"""What bounds capacity, and whether that is finite and can be reached; regions of clusters and buckets; what is held against a budget."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from flexspot.capacity.catalog.accelerators import NVIDIA, ON_EC2, Accelerator
from flexspot.capacity.catalog.unreachable_limits import NodeCeilings
from flexspot.capacity.cost.costed_plan import NEAR_PERCENT, BudgetCheck
from flexspot.capacity.values.verdict import PASSES, Outcome, fails, not_applicable, undecided
from flexspot.policies.inventory.cloud_resources import AwsProvider, Bucket, ClusterView, GcsBucketView, GkeClusterView, MonthlyCostView
from flexspot.policies.inventory.gpu_machines import PREFIXES, gpu_selection, is_gpu_machine
from flexspot.policies.inventory.node_offer import CatalogMachine, NodeOffer, allowed_machines, karpenter_key, karpenters
from flexspot.policies.inventory.views import Bounds, Ceiling, GpuPool, Inventory, Pool
from flexspot.policies.judging import Parameter, Parameters
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from decimal import Decimal

    from flexspot.capacity.values.verdict import ObjectIdentity
    from flexspot.policies.inventory.objects import ComputeClassView


MOST = (
    Parameter("most", 100_000, "The highest number of nodes or GPUs that counts as a limit."),
    Parameter("most-cores-or-gb", 10_000_000, "The highest number of cores or GB of memory that counts as a limit."),
)
"""From where on a number is none: nobody could ever pay for it."""


def bounded(bounds: Bounds, parameters: Parameters, makes: str) -> Outcome:
    """Passes where every group of bounds holds a finite number. `makes` begins the sentence: "it creates GPU nodes"."""

    def most(ceiling: Ceiling) -> int:
        return parameters.number("most" if ceiling.unit in {Ceiling.NODES, Ceiling.GPUS} else "most-cores-or-gb")

    def finite(ceiling: Ceiling) -> Tri:
        if ceiling.amount is UNKNOWN:
            return UNKNOWN
        return ceiling.amount is not None and 0 <= ceiling.amount <= most(ceiling)

    answers = [(group, any_of(map(finite, group))) for group in bounds]
    if missing := [_advised(group) for group, answer in answers if answer is False]:
        fields = ", ".join(" or ".join(ceiling.field for ceiling in group) for group in missing)
        highest = min(most(ceiling) for group in missing for ceiling in group)
        # Within a group one is enough; each of several groups needs its own.
        joint = " or " if len(missing) == 1 else ", "
        units = joint.join(sorted({ceiling.unit for group in missing for ceiling in group}))
        return fails(
            f"{makes} without a limit: {fields} is not set to a number from 0 to {highest}",
            f"set {fields} to the most {units} that you would pay for",
        )
    if unknown := [_advised(group) for group, answer in answers if answer is UNKNOWN]:
        return undecided(f"{', '.join(' or '.join(ceiling.field for ceiling in group) for group in unknown)} is not known yet")
    return PASSES


def _advised(group: tuple[Ceiling, ...]) -> tuple[Ceiling, ...]:
    return tuple(ceiling for ceiling in group if ceiling.advised)


_MIB = 1024 * 1024
_BESIDE_GPUS = ("nodes", "cpu", "memory")
GPU_COUNT_LABELS = tuple(f"{prefix}{kind.instance_label}-count" for kind in ON_EC2 for prefix in PREFIXES)


@dataclass(frozen=True)
class Machines:
    """The GPU machines that requirements leave. Unless `complete`, there are others, which the catalog does not have."""

    gpus: tuple[CatalogMachine, ...]
    complete: bool


def requirements_of(spec: Field) -> tuple[Field, ...] | Unknown:
    """The requirements, once all of what they say is known."""
    listed = spec.at("template", "spec", "requirements").parts()
    for each in listed.fields:
        values = each.at("values").parts()
        if UNKNOWN in (each.at("key").value, each.at("operator").value, *(value.value for value in values.fields)) or not values.complete:
            return UNKNOWN
    return listed.fields if listed.complete else UNKNOWN


def gpu_machines(requirements: tuple[Field, ...]) -> Machines:
    """The machines with GPUs that Karpenter may launch for a pod that asks for one."""
    left, complete = allowed_machines(requirements)
    return Machines(tuple(machine for machine in left if machine.gpu), complete)


def names_gpus(requirements: tuple[Field, ...], kind: Accelerator) -> bool:
    """Whether the requirements name machines with GPUs of a kind, and none of them rules these out."""
    selections = [gpu_selection(each, (kind,)) for each in requirements]
    return any(each.names is True for each in selections) and not any(each.excludes is True for each in selections)


def limited_kind(spec: Field) -> Accelerator:
    """The kind of GPUs that a NodePool has a limit on; NVIDIA's where it has none."""
    return next((kind for kind in ON_EC2 if not spec.at("limits", kind.resource).absent), NVIDIA)


def limited_machines(spec: Field) -> tuple[Decimal, Machines] | Outcome:
    """The limit on GPUs with the machines that it is about; or the verdict of any rule about both, where one of them is not there."""
    kind = limited_kind(spec)
    limit, requirements = spec.at("limits", kind.resource).number(), requirements_of(spec)
    if limit is None or limit == 0:
        return not_applicable("it has no limit on GPUs")
    if limit is UNKNOWN or requirements is UNKNOWN:
        return undecided("its requirements, or its limit on GPUs, are not known yet")
    found = gpu_machines(requirements)
    machines = Machines(tuple(machine for machine in found.gpus if machine.resource == kind.resource), found.complete)
    if not machines.gpus or not machines.complete or not names_gpus(requirements, kind):
        return not_applicable("the catalog lacks some of the instance types that it may launch")
    return limit, machines


def node_ceilings(spec: Field) -> tuple[NodeCeilings, bool]:
    """The limits on nodes, cpu and memory as far as they are known, and whether all of them are."""
    nodes, vcpu, memory = (spec.at("limits", name).number() for name in _BESIDE_GPUS)
    known = NodeCeilings(
        None if nodes is UNKNOWN else nodes,
        None if vcpu is UNKNOWN else vcpu,
        None if memory is UNKNOWN or memory is None else memory / _MIB,
    )
    return known, UNKNOWN not in (nodes, vcpu, memory)


def written_limits(spec: Field) -> str:
    """The limits beside that on GPUs, as a sentence lists them."""
    texts = {name: spec.at("limits", name).text() for name in _BESIDE_GPUS}
    return ", ".join(f"{name}={text}" for name, text in texts.items() if isinstance(text, str))


def creates_pools(compute_class: ComputeClassView) -> Tri:
    """Whether GKE may make node pools for the priorities that name none."""
    return compute_class.spec.at("nodePoolAutoCreation", "enabled").equals("true")


def made_on_demand(priority: Field) -> Tri:
    """Whether GKE would make pools of GPUs for the priority that are neither Spot, nor flex-start, nor wholly reserved.

    Of the affinities to reservations, AnyBestEffort and None go on to on-demand; without one, so does GKE.
    Source: the definition of ComputeClass, cloud.google.com/v1.
    """
    machine, family = priority.at("machineType").text(), priority.at("machineFamily").text()
    named = UNKNOWN if machine is UNKNOWN or family is UNKNOWN else is_gpu_machine(machine or f"{family}-any")
    return all_of(
        [
            priority.at("nodepools").absent if priority.at("nodepools").known else UNKNOWN,
            any_of([not priority.at("gpu").absent, named]),
            negated(priority.at("spot").equals("true")),
            negated(priority.at("flexStart", "enabled").equals("true")),
            negated(priority.at("reservations", "affinity").equals("Specific", "AnyThenFail")),
        ]
    )


def created_accelerators(compute_class: ComputeClassView) -> Iterator[str | Unknown]:
    """The GPU types of which GKE may make pools for the class."""
    if creates_pools(compute_class) is not True:
        return
    for priority in compute_class.spec.at("priorities").parts().fields:
        accelerator = priority.at("gpu", "type").text()
        if accelerator is not None:
            yield accelerator


_ZONE = re.compile(r"(?P<region>[a-z]+-[a-z]+\d+)-[a-z]")

# Locations of Cloud Storage with several regions, and how the names of these begin. NAM4 is two regions of America, EUR4 of Europe.
_CONTINENTS = (("us", "us-"), ("nam", ("us-", "northamerica-")), ("eu", "europe-"), ("asia", "asia-"))
_SEVERAL_REGIONS = re.compile(r"us|eu|asia|(?:nam|eur|asia)\d+")


def region_of_cluster(cluster: ClusterView, inventory: Inventory) -> str | Unknown | None:
    """The region; None where nothing that was given says it."""
    if isinstance(cluster, GkeClusterView):
        location = cluster.fields.at("location").text()
        zone = _ZONE.fullmatch(location) if isinstance(location, str) else None
        return zone["region"] if zone else location
    return _aws_region(cluster, inventory)


def _aws_region(resource: Bucket | ClusterView, inventory: Inventory) -> str | Unknown | None:
    """A resource's own region, or that of the one provider; with several, nobody says which makes the resource."""
    own = resource.fields.at("region")
    if not own.absent:
        return own.text()
    providers = {each.fields.at("region").text() for each in inventory.of(AwsProvider)}
    return next(iter(providers)) if len(providers) == 1 else None


def region_of_bucket(bucket: Bucket, inventory: Inventory) -> str | Unknown | None:
    """The region or the location, as it is written; None where nothing that was given says it."""
    return bucket.fields.at("location").text() if isinstance(bucket, GcsBucketView) else _aws_region(bucket, inventory)


def is_near(bucket: Bucket, cluster: ClusterView, inventory: Inventory) -> Tri | None:
    """Whether a bucket has its data in the region of a cluster; None where nothing says in which region one of them is."""
    region = region_of_cluster(cluster, inventory)
    chosen = bucket.fields.at("customPlacementConfig", "dataLocations").parts().fields
    places = [each.text() for each in chosen] or [region_of_bucket(bucket, inventory)]
    if UNKNOWN in (region, *places):
        return UNKNOWN
    return None if None in (region, *places) else any(_covers(str(place).lower(), str(region)) for place in places)


def _covers(location: str, region: str) -> bool:
    """Whether a location of Cloud Storage, in small letters, is the region, or several of which it may be one."""
    if not _SEVERAL_REGIONS.fullmatch(location):
        return location == region
    return any(location.startswith(name) and region.startswith(begins) for name, begins in _CONTINENTS)


_FIGURES = {"expected": "expected_usd", "worst-case": "worst_case_usd"}
_MISSING = {"expected": "unknown_prices", "worst-case": "unbounded_prices"}
_AT_MOST = {"expected": "expected_at_most_usd"}

_REFUSE = "refuse"

SCENARIO = Parameter(
    "scenario",
    "expected",
    "Which month is held against a budget: expected, or worst-case, in which every enforced ceiling is reached all month.",
)


@dataclass(frozen=True)
class HeldBudget:
    """One budget, where it is written, and what is held against it. `check` is None where an amount is not known yet.

    `refused`: a budget that missing prices may exceed is held as one that is exceeded.
    """

    path: str
    owner: str
    check: BudgetCheck | None
    refused: bool


def held(cost: MonthlyCostView, parameters: Parameters, near_percent: int = NEAR_PERCENT) -> list[HeldBudget] | None:
    """Each budget of `cost`; None for a scenario that there is not."""
    scenario = parameters.text(SCENARIO.name)
    if scenario not in _FIGURES:
        return None
    return [
        HeldBudget(f"{path}.budget_usd", _owner(each), _check(each, scenario, near_percent), each.at("on_unknown_prices").text() == _REFUSE)
        for path, each in cost.spenders
        if not each.at("budget_usd").absent
    ]


def uncertain_words(check: BudgetCheck) -> str:
    """What is known of a budget that missing prices may exceed, and what is not."""
    most = "with no upper bound" if check.at_most_usd is None else f"and {check.at_most_usd:,.2f} with them at on-demand prices"
    known = f"{check.owner} costs {check.spent_usd:,.2f} USD a month without the unknown prices, {most}"
    return f"{known}; its budget is {check.budget_usd:,}; not known: {', '.join(check.unknown)}"


def _owner(spender: Field) -> str:
    owner = spender.at("owner").text()
    return owner if isinstance(owner, str) else "somebody"


def _check(spender: Field, scenario: str, near_percent: int) -> BudgetCheck | None:
    budget, spent = spender.at("budget_usd").number(), spender.at(_FIGURES[scenario]).number()
    if budget is UNKNOWN or spent is UNKNOWN or budget is None or spent is None:
        return None
    missing = tuple(str(each.value) for each in spender.at(_MISSING[scenario]).parts().fields)
    at_most = spender.at(_AT_MOST[scenario]).number() if scenario in _AT_MOST else None
    return BudgetCheck(_owner(spender), budget, spent, missing, near_percent, None if at_most is UNKNOWN else at_most)


PoolT = TypeVar("PoolT", bound=Pool)


def pools_for(kind: type[PoolT], wanted: Mapping[str, Field], inventory: Inventory) -> list[PoolT]:
    """The pools of which it is not certain by one of these labels alone that none of their nodes carries it.

    A pool that is left out is one for which `offer.carries(wanted)` is False; those that are left must still be asked.
    """
    return index_of(kind, inventory).candidates(wanted)


def index_of(kind: type[PoolT], inventory: Inventory) -> PoolIndex[PoolT]:
    """The index of the pools of a kind."""
    return inventory.once("pools by label", kind, lambda: PoolIndex(inventory.of(kind)))


def gpu_pool_of(identity: ObjectIdentity, inventory: Inventory) -> GpuPool | None:
    """The pool that an object declares, if it has GPUs."""
    found = inventory.by("object", GpuPool, lambda each: each.identity).get(identity)
    return found[0] if found else None


class PoolIndex(Generic[PoolT]):
    """Pools by the values that their nodes' labels can have. A label is indexed when somebody first asks for it."""

    def __init__(self, pools: Sequence[PoolT]) -> None:
        self._pools = pools
        self._of_key: dict[str, tuple[dict[str | None, list[int]], list[int]]] = {}

    def candidates(self, wanted: Mapping[str, Field]) -> list[PoolT]:
        """The pools that no single one of the labels rules out, in their order."""
        return self.among([self.places(key, [value]) for key, value in wanted.items()])

    def among(self, several: Iterable[list[list[int]] | None]) -> list[PoolT]:
        """The pools of the shortest of several such lists of places; all of them where there is none."""
        bounded = [lists for lists in several if lists is not None]
        if not bounded:
            return list(self._pools)
        shortest = min(bounded, key=lambda lists: sum(map(len, lists)))
        return [self._pools[place] for place in sorted({place for each in shortest for place in each})]

    def places(self, key: str, values: Iterable[Field]) -> list[list[int]] | None:
        """Where the pools are whose nodes may have one of the values of a label, as lists to be joined; None where that may be any pool."""
        texts = [value.text() for value in values]
        if UNKNOWN in texts:
            return None
        by_value, open_to_any = self._index(key)
        return [*(by_value.get(text, []) for text in texts if text is not UNKNOWN), open_to_any]

    def _index(self, key: str) -> tuple[dict[str | None, list[int]], list[int]]:
        if key not in self._of_key:
            by_value: dict[str | None, list[int]] = {}
            open_to_any: list[int] = []
            for place, pool in enumerate(self._pools):
                possible = _possible_values(pool.offer, key)
                for value in possible or ():
                    by_value.setdefault(value, []).append(place)
                if possible is None:
                    open_to_any.append(place)
            self._of_key[key] = by_value, open_to_any
        return self._of_key[key]


def _possible_values(offer: NodeOffer, key: str) -> set[str | None] | None:
    """The values that a label of the offer's nodes can have, perhaps with some that it cannot; None where it may be any.

    Follows NodeOffer.carries for one label, and may say more than that but never less.
    """
    asked = [each for each in offer.requirements if karpenter_key(each) in {karpenters(key), None}]
    if key in offer.fixed:
        own = offer.fixed[key].text()
        return None if own is UNKNOWN else {own}
    for each in asked:
        values = each.at("values").parts()
        texts = {value.text() for value in values.fields}
        if each.at("key").known and each.at("operator").text() == "In" and values.complete and UNKNOWN not in texts:
            return {text for text in texts if text is not UNKNOWN}
    if asked or key.startswith(offer.open_prefixes) or not offer.complete:
        return None
    return set()
