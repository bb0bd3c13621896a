"""Sums from samples that were missing, late, duplicated, restarted, partitioned or deleted."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, cast

import pytest
from chargeback_months import HOUR, STEP, Month

from flexspot.capacity.catalog.accelerators import NEURON
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.chargeback.ledger import Ledger
from flexspot.capacity.chargeback.nodes import gpus_of_node, node_facts, unit_share
from flexspot.capacity.chargeback.queries import Owner, Question, label_of, owner_of, queries
from flexspot.capacity.chargeback.samples import MalformedReplyError, Series, SpanReader, merged, read_matrix

if TYPE_CHECKING:
    from collections.abc import Iterable

A100 = machines_of(Vendor.AWS)["p4d.24xlarge"]


def hours(month: Month, missing: Iterable[tuple[int, int]] = ()) -> dict[str, float]:
    """Return the allocated GPU hours by team."""
    found: dict[str, float] = {}
    for book in month.books(missing=missing).nodes.values():
        for owner, use in book.uses.items():
            found[owner.team] = found.get(owner.team, 0.0) + float(use.allocated) / HOUR
    return found


def test_sums_do_not_depend_on_how_the_month_is_sliced() -> None:
    month = Month()
    month.node("n1", 90 * 60, 20 * HOUR)
    month.pod("a", "n1", 100 * 60, 700 * 60, gpus=2)
    month.pod("b", "n1", 359 * 60, 361 * 60, gpus=1, team="speech")
    month.seen(Question.UTILISATION, {"namespace": "ns-vision", "pod": "a"}, 100 * 60, 700 * 60, 1.5)
    month.seen(Question.OPENCOST, {"node": "n1"}, 90 * 60, 20 * HOUR, 1.0)
    whole = month.books(24 * HOUR)

    for seconds in (6 * HOUR, 7 * 60):
        books = month.books(seconds)
        assert books.nodes.keys() == whole.nodes.keys()
        (sliced,), (book,) = books.nodes.values(), whole.nodes.values()
        assert (sliced.seconds, sliced.gpu_seconds, sliced.allocated) == (book.seconds, book.gpu_seconds, book.allocated)
        for owner, use in sliced.uses.items():
            assert (use.measured, round(use.used, 3)) == (book.uses[owner].measured, round(book.uses[owner].used, 3))


def test_a_few_missing_samples_equal_the_last_one_and_many_are_a_reported_gap() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    month.pod("a", "n1", 0, 24 * HOUR, gpus=1)

    assert hours(month, missing=[(5 * HOUR, 5 * HOUR + 5 * STEP)]) == {"vision": 24}
    long = month.books(missing=[(5 * HOUR, 7 * HOUR)])
    start = month.period.start
    assert [(gap.name, gap.start - start, gap.end - start) for gap in long.gaps] == [
        ("node n1", 5 * HOUR, 7 * HOUR),
        ("pod ns-vision/a", 5 * HOUR, 7 * HOUR),
    ]
    assert next(iter(long.nodes.values())).seconds == 22 * HOUR


def test_neuron_devices_are_charged_as_gpus_are() -> None:
    month = Month()
    month.node("t1", 0, 10 * HOUR, 16, resource=NEURON.series_value, machine="trn1.32xlarge")
    month.pod("a", "t1", 0, 10 * HOUR, gpus=8, resource=NEURON.series_value)
    # Its plugin has not reported its resources yet, but its machine is known.
    month.node("t2", 0, HOUR, 0, machine="trn1.32xlarge")

    assert hours(month) == {"vision": 80}
    assert sum(float(each.gpu_seconds) for each in month.books().nodes.values()) == 11 * 16 * HOUR
    assert f'resource=~"nvidia_com_gpu|{NEURON.series_value}|' in " ".join(each.expression for each in queries())


def test_a_pod_that_began_before_the_month_and_ends_after_it_counts_for_the_month_alone() -> None:
    month = Month()
    month.node("n1", -50 * HOUR, 50 * HOUR)
    month.pod("a", "n1", -50 * HOUR, 50 * HOUR, gpus=8)

    assert hours(month) == {"vision": 8 * 24}


def test_a_span_is_clipped_where_the_last_step_would_leave_the_month() -> None:
    reader = SpanReader[str](60, 5, end=150)

    assert [(each.start, each.end) for each in reader.read("pod", [(0, 1.0), (60, 1.0), (120, 1.0)])] == [(0, 150)]


def test_a_moment_that_was_counted_is_not_counted_again() -> None:
    reader = SpanReader[str](60, 5, end=1000)

    assert sum(each.seconds for each in reader.read("pod", [(0, 1.0), (60, 1.0)])) == 120
    assert sum(each.seconds for each in reader.read("pod", [(60, 1.0), (120, 2.0)])) == 60


def test_a_bridged_gap_between_slices_has_the_value_before() -> None:
    reader = SpanReader[str](60, 5, end=1000)
    list(reader.read("pod", [(0, 2.0)]))

    assert [(each.start, each.end, each.value) for each in reader.read("pod", [(180, 3.0)])] == [(60, 180, 2.0), (180, 240, 3.0)]


def test_a_name_that_is_given_to_another_machine_is_another_node() -> None:
    month = Month()
    month.node("n1", 0, 10 * HOUR)
    month.node("n1", 12 * HOUR, 20 * HOUR, gpus=1, machine="g6.xlarge")
    month.pod("a", "n1", 0, 10 * HOUR, gpus=8)
    month.pod("b", "n1", 12 * HOUR, 20 * HOUR, gpus=1)
    books = month.books()

    assert {facts.machine: (book.seconds, book.allocated) for (_, facts, _), book in books.nodes.items()} == {
        "p4d.24xlarge": (10 * HOUR, 80 * HOUR),
        "g6.xlarge": (8 * HOUR, 8 * HOUR),
    }


def test_labels_that_come_late_hold_from_the_beginning_and_changed_ones_from_the_change() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    month.seen(
        Question.ALLOCATIONS, {"uid": "u", "namespace": "x", "pod": "p", "node": "n1", "resource": "nvidia_com_gpu"}, 0, 10 * HOUR, 1
    )
    month.seen(Question.POD_LABELS, {"uid": "u", label_of("flexspot.dev/team"): "first"}, 2 * HOUR, 4 * HOUR)
    month.seen(Question.POD_LABELS, {"uid": "u", label_of("flexspot.dev/team"): "second"}, 4 * HOUR, 10 * HOUR)

    assert hours(month) == {"first": 4, "second": 6}


def test_team_and_environment_are_the_namespaces_whatever_the_pods_labels() -> None:
    team, environment, project = (label_of(f"flexspot.dev/{name}") for name in ("team", "environment", "project"))
    pod = {team: "beta", environment: "prod", project: "speech"}

    assert owner_of(pod, {team: "alpha", environment: "dev"}, "dev") == Owner("alpha", "speech", environment="dev")
    assert owner_of(pod, {}, "dev") == Owner("beta", "speech", environment="prod"), "a namespace without a team"


def test_a_pod_without_a_team_is_that_of_its_namespace() -> None:
    month = Month()
    month.node("n1", 0, HOUR)
    month.pod("a", "n1", 0, HOUR, gpus=1, team="")
    assert hours(month) == {"(no team)": 1}

    month.seen(Question.NAMESPACES, {"namespace": "ns-", label_of("flexspot.dev/team"): "search"}, 0, HOUR)
    assert hours(month) == {"search": 1}


def test_two_replicas_of_an_exporter_count_once_and_labels_that_prometheus_set_aside_are_found() -> None:
    replica = {"exported_pod": "train", "exported_namespace": "ml", "pod": "kube-state-metrics-0", "namespace": "monitoring"}
    series = [Series(replica, [(0, 4.0), (60, 4.0)]), Series(replica | {"pod": "kube-state-metrics-1"}, [(60, 4.0), (120, 4.0)])]

    assert merged(series, "namespace", "pod") == {("ml", "train"): [(0, 4.0), (60, 4.0), (120, 4.0)]}


def test_used_hours_are_what_dcgm_saw_of_allocated_gpus_and_never_more() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    month.pod("a", "n1", 0, 10 * HOUR, gpus=2)
    month.seen(Question.UTILISATION, {"exported_namespace": "ns-vision", "exported_pod": "a", "pod": "dcgm"}, 0, 4 * HOUR, 1.5)
    month.seen(Question.UTILISATION, {"namespace": "ns-vision", "pod": "a"}, 4 * HOUR, 5 * HOUR, 7.0)
    month.seen(Question.UTILISATION, {"namespace": "gpu-operator", "pod": "dcgm"}, 0, 5 * HOUR, 1.0)
    use = next(iter(next(iter(month.books().nodes.values())).uses.values()))

    assert (use.allocated, use.measured, use.used) == (20 * HOUR, 10 * HOUR, (4 * 1.5 + 1 * 2) * HOUR)


def test_use_belongs_to_the_pods_owner_at_the_time() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    month.pod("a", "n1", HOUR, 5 * HOUR, gpus=1, team="")
    for team, start, end in (("first", 0, 2 * HOUR), ("second", 2 * HOUR, 24 * HOUR)):
        month.seen(Question.NAMESPACES, {"namespace": "ns-", label_of("flexspot.dev/team"): team}, start, end)
    month.seen(Question.UTILISATION, {"namespace": "ns-", "pod": "a"}, 0, 24 * HOUR, 0.5)
    uses = next(iter(month.books().nodes.values())).uses

    assert {owner.team: (use.measured, use.used) for owner, use in uses.items()} == {
        "first": (HOUR, HOUR / 2),
        "second": (3 * HOUR, 3 * HOUR / 2),
    }


@pytest.mark.parametrize(
    "resource,units,share,machine",
    [
        ("nvidia_com_gpu", {"nvidia_com_gpu": 8}, Fraction(1), "p4d.24xlarge"),
        ("nvidia_com_gpu", {"nvidia_com_gpu": 32}, Fraction(1, 4), "p4d.24xlarge"),
        ("nvidia_com_mig_1g_5gb", {"nvidia_com_mig_1g_5gb": 56}, Fraction(1, 7), "p4d.24xlarge"),
        ("nvidia_com_mig_1g_10gb", {"nvidia_com_mig_1g_10gb": 32}, Fraction(1, 4), "p4d.24xlarge"),
        ("nvidia_com_mig_3g_20gb", {"nvidia_com_mig_3g_20gb": 16}, Fraction(1, 2), "p4d.24xlarge"),
        ("nvidia_com_mig_1g_5gb_me", {"nvidia_com_mig_1g_5gb_me": 8}, Fraction(1, 7), "p4d.24xlarge"),
        ("nvidia_com_mig_7g_80gb", {"nvidia_com_mig_7g_80gb": 8}, Fraction(1), "p5.48xlarge"),
        ("nvidia_com_mig_2g_35gb", {"nvidia_com_mig_2g_35gb": 24}, Fraction(2, 7), "p5en.48xlarge"),
        ("nvidia_com_mig_2g_12gb", {"nvidia_com_mig_2g_12gb": 2}, Fraction(2, 7), None),
    ],
)
def test_a_unit_is_the_part_of_a_gpu_that_no_other_can_have(
    resource: str, units: dict[str, float], share: Fraction, machine: str | None
) -> None:
    assert unit_share(resource, machines_of(Vendor.AWS).get(machine or ""), units) == share


def test_a_node_has_its_machines_gpus_also_while_it_boots_or_wastes_some_by_partitions() -> None:
    assert gpus_of_node(A100, {}) == gpus_of_node(A100, {"nvidia_com_mig_2g_10gb": 24}) == 8
    assert gpus_of_node(machines_of(Vendor.GCP)["n1-standard-8"], {"nvidia_com_gpu": 2}) == 2
    assert gpus_of_node(None, {}) == 0


def test_partitions_of_a_node_are_paid_as_parts_of_it() -> None:
    month = Month()
    month.node("n1", 0, 7 * HOUR, gpus=56, resource="nvidia_com_mig_1g_5gb")
    month.pod("a", "n1", 0, 7 * HOUR, gpus=4, resource="nvidia_com_mig_1g_5gb")

    assert hours(month) == {"vision": pytest.approx(4.0)}


def test_lost_work_survives_restarts_of_its_counters() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    month.pod("a", "n1", 0, 10 * HOUR, gpus=2)
    pod = {"namespace": "ns-vision", "pod": "a"}
    # A step takes two minutes. The container restarts twice, and repeats 40 and then 25 steps.
    month.series[Question.STEPS] = [(pod, minute * 60, minute * 60 + 60, minute // 2) for minute in range(60)]
    for start, end, lost, interruptions in ((1, 2, 0, 0), (2, 4, 40, 1), (5, 6, 0, 0), (6, 8, 25, 1)):
        month.seen(Question.LOST_STEPS, pod, start * HOUR, end * HOUR, lost)
        month.seen(Question.INTERRUPTIONS, pod, start * HOUR, end * HOUR, interruptions)
    month.seen(Question.EVICTIONS, {"instance": "kueue-0", "cluster_queue": "vision", "reason": "Preempted"}, 0, 5 * HOUR, 100)
    month.seen(Question.EVICTIONS, {"instance": "kueue-0", "cluster_queue": "vision", "reason": "Preempted"}, 5 * HOUR, 9 * HOUR, 103)
    month.seen(Question.EVICTIONS, {"instance": "kueue-1", "cluster_queue": "vision", "reason": "Preempted"}, 9 * HOUR, 12 * HOUR, 2)
    books = month.books()

    lost = next(iter(books.lost.values()))
    assert (lost.interruptions, lost.steps, lost.gpu_seconds) == (2, 65, 65 * 120 * 2)
    # Counts from before the month are not part of it.
    assert books.evictions == {("vision", "Preempted"): 5}


def test_lost_steps_of_unknown_duration_are_reported_as_steps() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    month.pod("a", "n1", 0, 10 * HOUR, gpus=2)
    month.seen(Question.LOST_STEPS, {"namespace": "ns-vision", "pod": "a"}, HOUR, 2 * HOUR, 9)

    lost = next(iter(month.books().lost.values()))
    assert (lost.steps, lost.gpu_seconds, lost.of_unknown_pace) == (9, 0, 9)


def test_labels_that_kube_state_metrics_does_not_show_are_reported_with_the_remedy() -> None:
    month = Month()
    month.seen(Question.NODES, {"node": "n1"}, 0, HOUR)
    notes = month.books().notes

    assert len(notes) == 3
    assert "--metric-labels-allowlist=pods=[flexspot.dev/team," in notes[-1]


@pytest.mark.parametrize(
    "labels,bought",
    [
        ({"karpenter.sh/capacity-type": "reserved"}, "reserved"),
        ({"eks.amazonaws.com/capacityType": "SPOT"}, "spot"),
        ({"cloud.google.com/gke-nodepool": "l4", "cloud.google.com/gke-spot": "true"}, "spot"),
        ({"cloud.google.com/gke-nodepool": "l4", "cloud.google.com/gke-provisioning": "preemptible"}, "spot"),
        ({"cloud.google.com/gke-nodepool": "h100", "cloud.google.com/gke-flex-start": "true"}, "flex-start"),
        ({"cloud.google.com/gke-flex-start": "true", "cloud.google.com/gke-queued": "true"}, "queued"),
        ({"cloud.google.com/gke-nodepool": "h100", "cloud.google.com/reservation-name": "block"}, "reserved"),
        ({"cloud.google.com/gke-nodepool": "system"}, "on-demand"),
        ({}, "(unknown)"),
    ],
)
def test_how_a_node_was_bought_is_read_off_the_labels_of_its_cloud(labels: dict[str, str], bought: str) -> None:
    assert node_facts({label_of(key): value for key, value in labels.items()}).bought_as == bought


def test_samples_that_are_not_numbers_are_ignored_and_reported() -> None:
    matrix = read_matrix(
        cast("object", [{"metric": {"node": "n1"}, "values": [[0, "1"], [60.0, "NaN"], [120, "+Inf"]]}, {"metric": {}, "values": []}])
    )
    assert [each.samples for each in matrix.series] == [[(0, 1.0)]]

    month = Month()
    ledger = Ledger(month.period, STEP)
    ledger.take({Question.NODES: matrix})
    assert "2 samples are no numbers" in ledger.close().notes[0]


@pytest.mark.parametrize(
    "result", [[{"values": []}], [{"metric": {}, "values": [[0]]}], [3], {"a": 1}, [{"metric": {}, "values": [[0, "x"]]}]]
)
def test_a_result_of_another_form_is_refused(result: object) -> None:
    with pytest.raises(MalformedReplyError):
        read_matrix(result)
