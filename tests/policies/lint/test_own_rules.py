"""An organisation's own rules: their syntax, and their verdicts, also with values that are not known yet."""

from __future__ import annotations

import builtins
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from lint_runs import ONE_RULE, RULES, WRONG, configured, deployment, linted, valid_sarif

from flexspot.capacity.values.errors import ExplainedError
from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.core import judge
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.lint.configuration import selected
from flexspot.policies.lint.formats import as_json, as_junit, as_sarif, as_text
from flexspot.policies.lint.report import with_baseline, written_baseline
from flexspot.policies.own_rules import read_own_rules
from flexspot.policies.values.field import UNKNOWN

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.policies.lint.configuration import Configuration


def verdict(configuration: Configuration, manifest: dict[str, Any], rule: str = "image-of-our-registry") -> tuple[Verdict, str]:
    [finding] = [each for each in judge(from_manifest(manifest), configuration.own, DEFAULTS) if each.rule == rule]
    return finding.verdict, finding.message


def with_variable(value: Any) -> dict[str, Any]:
    """Return a Deployment that passes, whose container has a variable that no expression reads."""
    manifest = deployment("registry.acme.com/web:1")
    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": value}]
    return manifest


@pytest.mark.parametrize(
    "manifest,wanted",
    [
        (deployment("docker.io/nginx:1"), Verdict.FAIL),
        (deployment("registry.acme.com/web:1"), Verdict.PASS),
        (deployment("docker.io/nginx:1", namespace="kube-system"), Verdict.NOT_APPLICABLE),
        ({**deployment("docker.io/nginx:1"), "kind": "StatefulSet"}, Verdict.NOT_APPLICABLE),
        # Another group: Volcano's kind.
        ({**deployment("docker.io/nginx:1"), "apiVersion": "batch.volcano.sh/v1", "kind": "Job"}, Verdict.NOT_APPLICABLE),
        ({**deployment("docker.io/nginx:1"), "apiVersion": "batch/v1", "kind": "Job"}, Verdict.FAIL),
        (deployment(UNKNOWN), Verdict.UNKNOWN),
        (deployment("docker.io/nginx:1", namespace=UNKNOWN), Verdict.UNKNOWN),
        # Values that no expression reads may be unknown.
        (deployment("docker.io/nginx:1", labels={"release": UNKNOWN}), Verdict.FAIL),
        (deployment("registry.acme.com/web:1", uid=UNKNOWN), Verdict.PASS),
        (with_variable(UNKNOWN), Verdict.PASS),
    ],
)
def test_an_own_rule_judges_objects_of_its_kinds_that_meet_its_condition(manifest: dict[str, Any], wanted: Verdict, tmp_path: Path) -> None:
    assert verdict(configured(tmp_path, RULES), manifest)[0] is wanted


def test_an_object_on_which_the_check_cannot_be_evaluated_fails(tmp_path: Path) -> None:
    manifest = deployment("a")
    del manifest["spec"]["template"]["spec"]["containers"][0]["image"]

    found, message = verdict(configured(tmp_path, RULES), manifest)

    assert found is Verdict.FAIL
    assert message.startswith(
        "a container's image is not of registry.acme.com; evaluating the check failed on this object, so the API server would refuse it:"
    )
    assert "image" in message


def test_quantities_are_compared_as_quantities(tmp_path: Path) -> None:
    configuration = configured(tmp_path, RULES)

    def of(limit: str) -> Verdict:
        queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "a"}, "spec": {"limit": limit}}
        return verdict(configuration, queue, "quota-is-small")[0]

    assert [of("999"), of("1k"), of("1Ki"), of("2e3")] == [Verdict.PASS, Verdict.PASS, Verdict.FAIL, Verdict.FAIL]


def test_lint_reports_own_rules_like_other_rules(tmp_path: Path) -> None:
    configuration = configured(tmp_path, RULES)
    accepted = deployment("docker.io/b:1", name="b", annotations={"flexspot.dev/ignore-image-of-our-registry": "moves in May"})
    files = {"a_yaml": yaml.safe_dump(deployment("docker.io/a:1")), "b_yaml": yaml.safe_dump(accepted)}
    commented = "# flexspot.dev/ignore-image-of-our-registry: moves in June\n" + yaml.safe_dump(deployment("docker.io/c:1", name="c"))

    report = linted(tmp_path, configuration, **files, c_yaml=commented)

    ours = [each for each in report.findings if each.finding.rule == "image-of-our-registry"]
    assert [(each.path.rpartition("/")[2], each.line, each.suppressed.reason if each.suppressed else "") for each in ours] == [
        ("a.yaml", 9, ""),
        ("b.yaml", 11, "moves in May"),
        ("c.yaml", 10, "moves in June"),
    ]
    assert report.failed
    assert "ACME001" in as_json(report)
    assert "registry.acme.com, and name it there" in as_text(report)
    assert '"image-of-our-registry"' in as_sarif(report, "1")
    assert not [each for each in report.open if each.finding.rule == "suppression"]


def test_levels_suppressions_and_paths_apply_to_own_rules(tmp_path: Path) -> None:
    more = "flexspot: {image-of-our-registry: {level: advisory, locked: true}}\n"
    more += "paths: [{match: [old/*], rules: {image-of-our-registry: disabled}}]\n"
    manifest = yaml.safe_dump(deployment("docker.io/a:1", annotations={"flexspot.dev/ignore-image-of-our-registry": "no"}))
    report = linted(tmp_path, configured(tmp_path, RULES + more), a_yaml=manifest, old__a_yaml=manifest)

    [ours] = [each for each in report.open if each.finding.rule == "image-of-our-registry"]
    assert (ours.path.removeprefix(f"{tmp_path}/"), ours.binding, ours.suppressed) == ("a.yaml", False, None)


@pytest.mark.parametrize(
    "check,labels,wanted",
    [
        ("object.metadata.labels.all(k, object.metadata.labels[k] != 'bad')", {"a": UNKNOWN}, Verdict.UNKNOWN),
        ("'owner' in object.metadata.labels", {"owner": "a", "b": UNKNOWN}, Verdict.UNKNOWN),
        ("object.metadata.labels['acme.com/owner'] == 'a'", {"acme.com/owner": UNKNOWN}, Verdict.UNKNOWN),
        ("object.metadata.labels.owner == 'a'", {"owner": "a", "b": UNKNOWN}, Verdict.PASS),
        ("object.metadata.name == 'web'", {"owner": UNKNOWN}, Verdict.PASS),
    ],
)
def test_an_expression_that_may_read_an_unknown_value_is_undecided(check: str, labels: Any, wanted: Verdict, tmp_path: Path) -> None:
    rules = [{"name": "labelled", "kinds": ["Deployment"], "check": check, "message": "m"}]
    configuration = configured(tmp_path, yaml.safe_dump({"own-rules": rules}))

    assert verdict(configuration, deployment("a", labels=labels), "labelled")[0] is wanted


ENTRY = {"name": "a", "kinds": ["Job"], "check": "true", "message": "m"}


@pytest.mark.parametrize(
    "entry,message",
    [
        ({"check": "object.spec."}, "own-rules.0.check: it is not a CEL expression"),
        ({"check": "objct.spec == 1"}, "undeclared reference to 'objct"),
        ({"check": "1 + 1"}, "own-rules.0.check: it returns a value of type int"),
        ({"variables": {"x": "variables.y", "y": "1"}}, "own-rules.0.variables.x: it uses variables.y, which is not defined before it"),
        ({"check": "variables.nope == 1"}, "own-rules.0.check: it uses variables.nope, which is not defined"),
        ({"check": None}, "own-rules.0.check: it is missing"),
        ({"name": "A b"}, "own-rules.0.name: 'A b' is not allowed"),
        ({"name": "fractional-gpu"}, "name: fractional-gpu is already taken"),
        ({"code": "FLX001"}, "code: FLX001 is already taken"),
        ({"kinds": "Job"}, "own-rules.0.kinds: must be a list of kinds"),
        ({"levl": "x"}, "did you mean level?"),
        ({"severity": "loud"}, "'loud' is not allowed"),
        ("a", "own-rules.0: must be a mapping with name, kinds, check, message"),
    ],
)
def test_an_error_in_a_rule_is_reported_with_its_place(entry: Any, message: str) -> None:
    problems: list[str] = []
    changed = {key: value for key, value in {**ENTRY, **entry}.items() if value is not None} if isinstance(entry, dict) else entry
    read_own_rules([changed], ["fractional-gpu", "FLX001"], problems)

    assert any(message in each for each in problems), problems


def test_without_the_evaluator_the_message_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "flexspot.policies.own_rules.evaluation":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    problems: list[str] = []
    read_own_rules([ENTRY], [], problems)

    assert problems == ["own-rules.0.check: the CEL evaluator is not installed: install flexspot with its extra, flexspot[own-rules]"]


def test_a_baseline_distinguishes_own_rules(tmp_path: Path) -> None:
    def rules(*names: str) -> str:
        return yaml.safe_dump({"own-rules": [{"name": each, "kinds": ["Deployment"], "check": "false", "message": each} for each in names]})

    manifest = yaml.safe_dump(deployment("a"))
    before = linted(tmp_path, configured(tmp_path, rules("second")), a_yaml=manifest)
    (tmp_path / "baseline.json").write_text(written_baseline(before, tmp_path / "baseline.json"))

    after = with_baseline(linted(tmp_path, configured(tmp_path, rules("first", "second"))), tmp_path / "baseline.json")

    assert {each.finding.rule for each in after.open} == {"first"}


def test_two_own_rules_with_the_same_code_are_refused(tmp_path: Path) -> None:
    rules = [{**ENTRY, "name": each, "code": "ACME1"} for each in ("a", "b")]

    with pytest.raises(ExplainedError) as raised:
        configured(tmp_path, yaml.safe_dump({"own-rules": rules}))

    assert raised.value.evidence == ("own-rules.1.code: ACME1 is already taken",)


def test_an_own_rule_without_a_code_is_selected_by_a_code_from_its_name(tmp_path: Path) -> None:
    configuration = configured(tmp_path, RULES)

    assert selected(["own-*"], configuration.known_rules) == {"quota-is-small"}


def checking(folder: Path, check: str, kind: str = "Secret") -> Configuration:
    return configured(folder, yaml.safe_dump({"own-rules": [{"name": "checked", "kinds": [kind], "check": check, "message": "m"}]}))


def secret(**data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "b"}, "stringData": data}


@pytest.mark.parametrize(
    "check,data",
    [
        ("object.stringData.n > 1", {"n": 2**70, "password": "hunter2"}),
        ("object.stringData.n > 1", {"n": -(2**70), "password": "hunter2"}),
        ("object.stringData.n > 1", {"n": 10**400, "password": "hunter2"}),
        ("quantity(object.stringData.password).isGreaterThan(quantity('1'))", {"password": "hunter2"}),
        ("object.stringData[object.stringData.password] == 'a'", {"password": "hunter2"}),
    ],
)
def test_no_message_quotes_the_contents_of_a_secret(check: str, data: dict[str, Any], tmp_path: Path) -> None:
    _, message = verdict(checking(tmp_path, check), secret(**data), "checked")

    assert "hunter2" not in message
    assert "118059162" not in message


@pytest.mark.parametrize(
    "number,wanted", [(2**63 - 1, Verdict.PASS), (2**63, Verdict.PASS), (2**70, Verdict.PASS), (-(2**70), Verdict.FAIL)]
)
def test_numbers_beyond_64_bits_are_judged_as_the_api_server_reads_them(number: int, wanted: Verdict, tmp_path: Path) -> None:
    manifest = {**deployment("a"), "spec": {"number": number}}

    found, message = verdict(checking(tmp_path, "double(object.spec.number) > 1.0", "Deployment"), manifest, "checked")

    assert (found, "the check fails on" in message) == (wanted, False)


@pytest.mark.parametrize(
    "check",
    [
        "[1.5, 2.5].min() == 1.5",
        "['a', 'b'].max() == 'b'",
        "object.spec.list.sum() == 3.5",
        "object.spec.list.max() == 2.5",
        "[1, 2].sum() == 3",
    ],
)
def test_min_max_and_sum_work_for_lists_of_any_type(check: str, tmp_path: Path) -> None:
    manifest = {**deployment("a"), "spec": {"list": [1.0, 2.5]}}

    assert verdict(checking(tmp_path, check, "Deployment"), manifest, "checked") == (Verdict.PASS, "")


def test_formats_describe_own_rules_without_a_page(tmp_path: Path) -> None:
    configuration = configured(tmp_path, f"pages: https://git.acme.com/flexspot\n{ONE_RULE}")
    report = linted(tmp_path, configuration, a_yaml=yaml.safe_dump(WRONG))

    sarif = json.loads(as_sarif(report, "1", configuration))

    [run] = sarif["runs"]
    rules = {each["id"]: each for each in run["tool"]["driver"]["rules"]}
    [result] = [each for each in run["results"] if each["ruleId"] == "image-of-our-registry"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "image-of-our-registry"
    assert "helpUri" not in rules["image-of-our-registry"]
    assert "Reference" not in rules["image-of-our-registry"]["help"]["markdown"]
    assert rules["image-not-pinned"]["help"]["markdown"].endswith("Reference: https://git.acme.com/flexspot/docs/rules/image-not-pinned.md")
    valid_sarif(sarif)
    [case] = [each for each in as_junit(report).split("<testcase") if "ACME001" in each]
    assert "See " not in case
