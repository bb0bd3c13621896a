"""Objects that are reported twice, or share one name: counted once, or reported with an incomplete report."""

from __future__ import annotations

from decimal import Decimal

from chargeback_months import HOUR, Month

from flexspot.capacity.chargeback.queries import Question, label_of, queries
from flexspot.infra.cli.money import chargeback_tables as words

TEAM = label_of("flexspot.dev/team")


def test_one_node_name_in_two_clusters_is_reported_and_the_report_is_incomplete() -> None:
    """Each cluster has a node of the same name: a p4d on Spot with a day of work, and a small one."""
    month = Month()
    month.node("ip-10-0-0-7", 0, 24 * HOUR)
    month.pod("train", "ip-10-0-0-7", 0, 24 * HOUR, gpus=8)
    labels = {
        label_of("node.kubernetes.io/instance-type"): "g6.xlarge",
        label_of("topology.kubernetes.io/region"): "us-east-1",
        label_of("karpenter.sh/capacity-type"): "spot",
    }
    month.seen(Question.NODES, {"node": "ip-10-0-0-7", "provider_id": "aws:///other"}, 0, 24 * HOUR)
    month.seen(Question.NODE_LABELS, {"node": "ip-10-0-0-7", **labels}, 0, 24 * HOUR)
    report = month.report()

    assert not report.complete
    assert report.doubled == {"node ip-10-0-0-7": 24 * HOUR}
    assert any("ip-10-0-0-7 means two different objects for 24.0 hours" in each and "--match" in each for each in words.warnings(report))


def test_two_machines_of_one_kind_and_name_are_distinguished_by_their_ids() -> None:
    month = Month()
    month.node("node-1", 0, 24 * HOUR)
    for uuid in ("a", "b"):
        month.seen(Question.NODES, {"node": "node-2", "provider_id": "", "system_uuid": uuid}, 0, 24 * HOUR)
    month.seen(Question.NODES, {"node": "node-1", "provider_id": "aws:///other"}, 0, 24 * HOUR)

    assert month.report().doubled == {"node node-1": 24 * HOUR, "node node-2": 24 * HOUR}


def test_a_namespace_of_two_teams_at_once_is_reported() -> None:
    month = Month()
    month.node("node-1", 0, 24 * HOUR)
    for team in ("vision", "speech"):
        month.seen(Question.NAMESPACES, {"namespace": "ml", TEAM: team}, 0, 12 * HOUR)

    assert month.report().doubled == {"namespace ml": 12 * HOUR}


def test_a_node_that_changes_its_name_or_labels_is_counted_as_one_after_the_other() -> None:
    """Prometheus repeats the last sample of a vanished object for five minutes."""
    month = Month()
    month.node("node-1", 0, 6 * HOUR + 300)
    month.node("node-1", 6 * HOUR, 12 * HOUR, machine="g6.xlarge")
    month.seen(Question.NODES, {"node": "node-1", "provider_id": "aws:///another"}, 12 * HOUR - 300, 24 * HOUR)

    assert month.report().doubled == {}


def test_an_exporter_that_shows_no_labels_does_not_hide_what_another_shows() -> None:
    """A second kube-state-metrics, without the argument, reports the same node and pod. It has no labels, which is not a contradiction."""
    month = Month()
    month.seen(Question.NODE_LABELS, {"node": "node-1", "job": "theirs"}, 0, 24 * HOUR)
    month.node("node-1", 0, 24 * HOUR)
    month.pod("train", "node-1", 0, 24 * HOUR, gpus=8)
    month.seen(Question.NODE_LABELS, {"node": "node-1"}, 0, 24 * HOUR)
    month.seen(Question.POD_LABELS, {"uid": "uid-train"}, 0, 24 * HOUR)
    report = month.report()

    assert report.complete
    assert report.by("team")["vision",].usd == (Decimal("7.6435") * 24).quantize(Decimal("0.01"))


def test_gpus_are_summed_over_containers_and_never_over_exporters() -> None:
    """Two jobs that scrape one exporter have the same instance.

    The container distinguishes requests, and the greatest value of each counts.
    """
    asked = {each.question: each.expression for each in queries()}

    for_each = "uid, namespace, exported_namespace, pod, exported_pod, node, exported_node, resource"
    assert asked[Question.ALLOCATIONS].startswith(f"sum by ({for_each}) (max by ({for_each}, container, exported_container) (")
    assert asked[Question.EVICTIONS].startswith("max by (instance, cluster_queue, reason) (sum by (job, instance, cluster_queue, reason) (")
