"""Every rule is in the API server, or somebody wrote down why it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policies.admission.form import reasons
from policies.admission.forms import all_forms
from policies.rules import all_rules

if TYPE_CHECKING:
    from policies.judging.rule import AnyRule


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_has_a_form_in_cel_or_a_reason_why_it_has_none(rule: AnyRule) -> None:
    module = rule.name.replace("-", "_")
    answers = [rule.name in {form.rule.name for form in all_forms()}, rule.name in reasons()]

    assert any(answers), (
        f"the API server knows nothing of {rule.name}: write policies/admission/forms/{module}.py with its FORM in CEL, or list the rule"
        " in policies/admission/without_cel.yaml under the reason why it has none"
    )
    assert not all(answers), f"{rule.name} has a form: take it out of policies/admission/without_cel.yaml"


def test_reasons_are_sentences_about_rules_that_there_are() -> None:
    assert set(reasons()) <= {rule.name for rule in all_rules()}
    assert all(len(reason) > 30 for reason in reasons().values())


@pytest.mark.parametrize("form", all_forms(), ids=lambda form: form.rule.name)
def test_a_form_matches_something_and_names_each_kind_once(form: object) -> None:
    matches = getattr(form, "matches", ())

    assert matches
    assert len({(each.group, each.kind) for each in matches}) == len(matches)
