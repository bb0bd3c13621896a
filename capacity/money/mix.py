"""Several jobs of one platform: each gets its own advice, and the mixture is what a cluster needs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from capacity.money.advice import Advice, advise
from capacity.money.advice_rules import Method
from capacity.money.job_needs import JobNeeds
from capacity.money.usd import saved_percent
from capacity.names import Name  # noqa: TC001 -- pydantic reads it at run time, of a class that is no direct child of Record
from capacity.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from capacity.money.machine_prices import MachinePrices


class NamedJob(JobNeeds):
    """A job of a mixture; `runs` is how often it runs in the period that is looked at."""

    name: Name
    runs: Annotated[int, Field(ge=1)] = 1


class JobMix(Record):
    """The file of `flexspot advise mix`."""

    jobs: Annotated[tuple[NamedJob, ...], Field(min_length=1)]


@dataclass(frozen=True)
class MixAdvice:
    """`method` is HYBRID when the jobs need more than one. The sums count each job as often as it runs, at the most that it can cost."""

    method: Method
    advice: dict[str, Advice]
    usd: Decimal
    on_demand_usd: Decimal

    @property
    def saved_percent(self) -> Decimal:
        """Against on-demand for all."""
        return saved_percent(self.usd, self.on_demand_usd)


def advise_mix(jobs: JobMix, prices_of: Callable[[JobNeeds], MachinePrices]) -> MixAdvice:
    """Each job by its tolerance. Raises what `prices_of` raises for a machine whose price is not known."""
    found = {job.name: advise(job, prices_of(job)) for job in jobs.jobs}
    methods = {each.method for each in found.values()}
    usd = on_demand = Decimal(0)
    for job in jobs.jobs:
        by_method = {each.estimate.method: each.estimate.usd_most for each in found[job.name].options}
        list_price = by_method[Method.ON_DEMAND] or Decimal(0)
        on_demand += list_price * job.runs
        usd += (found[job.name].chosen.usd_most or list_price) * job.runs
    return MixAdvice(methods.pop() if len(methods) == 1 else Method.HYBRID, found, usd, on_demand)
