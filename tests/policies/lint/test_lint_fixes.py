"""`--fix`: additions to YAML, refused changes, and that fixed findings are gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.values.errors import ExplainedError
from flexspot.capacity.values.verdict import Addition
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.fixes import NotEditableError, fixes_of, owner_label, with_addition
from flexspot.policies.lint.run import lint

if TYPE_CHECKING:
    from flexspot.policies.lint.fixes import Fixes
    from flexspot.policies.lint.report import LintReport

OWNER = ("team", "research")

FIXABLE = ("missing-owner-labels", "spot-pool-without-taint", "grace-exceeds-notice")

POOL = """\
# the pool of the training team
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:  # whose it is
  # a name that queues go by
  name: 'training'
spec:
  limits: {nvidia.com/gpu: 16}
  template:
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: training}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
        - {key: node.kubernetes.io/instance-type, operator: In, values: [p5.48xlarge]}
      taints:
        - {key: nvidia.com/gpu, value: present, effect: NoSchedule}
"""

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: tränen, namespace: research}
spec:
  backoffLimit: 10
  template:
    spec:
      restartPolicy: Never   # a failed pod is another pod
      nodeSelector: {cloud.google.com/gke-spot: "true"}
      containers:
      - name: trainer
        image: us-docker.pkg.dev/example/trainer:v2.1
        resources: {limits: {nvidia.com/gpu: 1}}
"""

FIXED_POOL = POOL.replace("# whose it is\n", "# whose it is\n  labels:\n    team: research\n").replace(
    "      taints:\n", "      taints:\n        - {key: flexspot.dev/capacity-type, value: spot, effect: NoSchedule}\n"
)

FIXED_JOB = JOB.replace("{name", "{labels: {team: research}, name").replace(
    "    spec:\n      restart", "    spec:\n      terminationGracePeriodSeconds: 15\n      restart"
)


def judged(folder: Path) -> LintReport:
    return lint([str(folder)], Configuration(closed=True))


def written(folder: Path, text: str, name: str = "work.yaml") -> Path:
    (folder / name).write_bytes(text.encode())
    return folder / name


def fixed(folder: Path, text: str, name: str = "work.yaml", owner: tuple[str, str] | None = OWNER) -> tuple[str, Fixes]:
    """Return the text after `--fix`, and the fixes."""
    path = written(folder, text, name)
    fixes = fixes_of(judged(folder), owner)
    for change in fixes.changes:
        change.write()
    return path.read_bytes().decode(), fixes


@pytest.mark.parametrize(
    "before,after",
    [
        (POOL, FIXED_POOL),
        (JOB, FIXED_JOB),
        (f"{POOL}---\n{JOB}", f"{FIXED_POOL}---\n{FIXED_JOB}"),
        (POOL.replace("\n", "\r\n"), FIXED_POOL.replace("\n", "\r\n")),
        (JOB.rstrip("\n"), FIXED_JOB.rstrip("\n")),
    ],
    ids=["a pool", "a job", "two documents", "lines that end as on Windows", "no line end at the end"],
)
def test_only_lines_are_added_and_the_findings_are_gone(before: str, after: str, tmp_path: Path) -> None:
    text, fixes = fixed(tmp_path, before)

    assert text == after
    assert fixes.left == ()
    assert [each.finding.rule for each in judged(tmp_path).open if each.finding.rule in FIXABLE] == []
    assert fixes_of(judged(tmp_path), OWNER).changes == ()


def test_a_missing_list_is_created_and_json_stays_json(tmp_path: Path) -> None:
    without_taints = POOL[: POOL.index("      taints:")]
    text, _ = fixed(tmp_path, without_taints)
    assert "    spec:\n      taints:\n        - {key: flexspot.dev/capacity-type, value: spot, effect: NoSchedule}\n" in text

    job = '{"apiVersion": "batch/v1", "kind": "Job",\n\t"metadata": {"name": "a"}, "spec": {"template": {"spec": '
    job += '{"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}}}\n'
    text, _ = fixed(tmp_path, job, "job.json")
    assert text == job.replace('{"name": "a"}, "spec', '{"labels": {"team": "research"}, "name": "a"}, "spec')


def test_an_item_of_a_list_is_fixed_in_place(tmp_path: Path) -> None:
    item = "".join(f"    {line}" for line in JOB.splitlines(keepends=True)).replace("    apiVersion", "  - apiVersion", 1)
    text, fixes = fixed(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n{item}")

    assert (text.count("team: research"), fixes.left) == (1, ())


@pytest.mark.parametrize(
    "text,name,reason",
    [
        (JOB.replace("name: tränen", "name: '{{ .Values.name }}'"), "work.yaml", "the document is a template"),
        (JOB.replace("    spec:\n", "    spec: &pods\n"), "work.yaml", "a YAML anchor may share the value to change"),
        (f"```yaml\n{JOB}```\n", "work.md", "only files ending in .yaml, .yml, .json are changed"),
        (f"{JOB}---\n{JOB}", "work.yaml", "the file does not hold one object of this name"),
        (JOB.replace("metadata: {name: tränen, namespace: research}", "metadata:"), "work.yaml", "metadata.labels has no value"),
        (f"\ufeff{JOB}", "work.yaml", "it begins with a byte order mark"),
    ],
    ids=["template", "anchor", "markdown", "twice", "nothing written", "byte order mark"],
)
def test_an_uncertain_fix_is_not_applied_and_its_reason_is_reported(text: str, name: str, reason: str, tmp_path: Path) -> None:
    after, fixes = fixed(tmp_path, text, name)

    assert reason in {why for _, why in fixes.left}
    assert "team: research" not in after


def test_a_written_grace_period_is_not_changed(tmp_path: Path) -> None:
    text = JOB.replace("      restartPolicy", "      terminationGracePeriodSeconds: 25\n      restartPolicy")

    assert "Seconds: 25" in fixed(tmp_path, text)[0]
    assert "grace-exceeds-notice" in {each.finding.rule for each in judged(tmp_path).open}


def test_a_file_that_cannot_be_replaced_is_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, POOL)
    [change] = fixes_of(judged(tmp_path), OWNER).changes

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(ExplainedError, match="cannot be written: Permission denied"):
        change.write()

    assert [each.name for each in tmp_path.iterdir()] == ["work.yaml"]
    assert path.read_text() == POOL


def test_a_link_and_the_mode_of_its_target_are_kept(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = written(tmp_path / "real", POOL)
    real.chmod(0o640)
    (tmp_path / "link.yaml").symlink_to(real)

    for change in fixes_of(lint([str(tmp_path / "link.yaml")], Configuration()), OWNER).changes:
        change.write()

    assert (tmp_path / "link.yaml").is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == (FIXED_POOL, 0o640)


def test_a_deleted_file_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path, POOL)
    report = judged(tmp_path)
    path.unlink()

    assert {why for _, why in fixes_of(report, OWNER).left} == {"it cannot be read: No such file or directory"}


def test_a_file_that_is_not_utf8_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "work.yaml"
    path.write_bytes(POOL.encode() + b"---\ndata: \xc3\x28\n")

    assert {why for _, why in fixes_of(judged(tmp_path), OWNER).left} == {"it is not UTF-8"}


@pytest.mark.parametrize(
    "text,addition,after",
    [
        ("spec: {}\n", Addition("spec.template", "seconds", 15), "spec: {template: {seconds: 15}}\n"),
        ("spec:\n  a: 1\n", Addition("spec.taints", "", {"key": "on"}), 'spec:\n  taints:\n    - {key: "on"}\n  a: 1\n'),
        ("spec:\n- a: 1\n", Addition("spec", "", "word"), "spec:\n- word\n- a: 1\n"),
        ("spec:\n  a: 1\n", Addition("spec.one.two", "key", "value"), "spec:\n  one:\n    two:\n      key: value\n  a: 1\n"),
        ("spec: {a: 1}\n", Addition("spec.list", "", "value"), "spec: {list: [value], a: 1}\n"),
        ("items:\n  - spec:\n      a: 1\n", Addition("items[0].spec", "key", "2"), 'items:\n  - spec:\n      key: "2"\n      a: 1\n'),
    ],
    ids=["an empty mapping", "a list", "among others", "several levels", "in brackets", "in a list"],
)
def test_an_addition_is_inserted_in_its_place(text: str, addition: Addition, after: str) -> None:
    assert with_addition(text, (), 1, addition, is_json=False) == after


@pytest.mark.parametrize(
    "text,at",
    [
        ("spec: text\n", "spec"),
        ("spec:\n  a: text\n", "spec.a.b"),
        ("spec: {key: 1}\n", "spec"),
        ("- a: 1\n", "spec"),
        ("a: 1\n", ""),
        ("? a\n: b: 1\n", "a"),
        ("items:\n  - a: 1\n", "items[0]"),
        ("a: [\n", "a"),
    ],
    ids=["a text", "below a text", "written already", "a list", "the document", "a question mark", "an element", "no YAML"],
)
def test_nothing_is_written_in_place_of_another_value(text: str, at: str) -> None:
    with pytest.raises(NotEditableError):
        with_addition(text, (), 1, Addition(at, "key", "value"), is_json=False)


@pytest.mark.parametrize("text", ["research", "name=research", "team="])
def test_an_owner_must_be_an_owner_label(text: str) -> None:
    with pytest.raises(ExplainedError, match=r"--owner .* names no owner"):
        owner_label(text, DEFAULTS)

    assert owner_label("team=research", DEFAULTS) == OWNER
