"""Mixed workloads: the fourth row of the guide's decision matrix."""

from __future__ import annotations

from decimal import Decimal

from money_jobs import COURSE_A2

from capacity.cost.advice import JobMix, advise_mix
from capacity.cost.estimates import Method

PLACE = {"cloud": "gcp", "region": "us-central1", "machine": "a2-highgpu-8g"}
SWEEP = {**PLACE, "name": "sweep", "work_hours": 24, "nodes": 4, "piece_hours": 1, "runs": 10}
TRAINING = {**PLACE, "name": "training", "work_hours": 72, "nodes": 4, "interruptible": False}
SERVING = {**PLACE, "name": "serving", "work_hours": 730, "user_facing": True}


def test_a_cluster_of_mixed_work_is_a_hybrid_of_spot_dws_and_on_demand() -> None:
    found = advise_mix(JobMix.model_validate({"jobs": [SWEEP, TRAINING, SERVING]}), lambda _: COURSE_A2)

    assert found.method is Method.HYBRID
    assert [each.method for each in found.advice.values()] == [Method.SPOT, Method.QUEUED, Method.ON_DEMAND]


def test_the_blended_cost_counts_every_run_at_the_most_that_it_can_cost() -> None:
    found = advise_mix(JobMix.model_validate({"jobs": [SWEEP, SERVING]}), lambda _: COURSE_A2)

    sweep = found.advice["sweep"].chosen.usd_most or Decimal(0)
    assert found.usd == 10 * sweep + Decimal("29.39") * 730
    assert found.on_demand_usd == Decimal("29.39") * (10 * 24 * 4 + 730)
    assert 30 < found.saved_percent < 40
