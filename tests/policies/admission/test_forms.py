"""Every rule is in the API server, or somebody wrote down why it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policies.admission.forms import all_forms
from policies.rules import all_rules

if TYPE_CHECKING:
    from policies.judging import AnyRule


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_has_a_form_in_cel_or_says_why_it_has_none(rule: AnyRule) -> None:
    name = rule.name.replace("-", "_").upper()
    has_form = rule.name in {form.rule.name for form in all_forms()}

    assert has_form or rule.without_cel, (
        f"the API server knows nothing of {rule.name}: write it in CEL as {name} in policies/admission/forms, or say in the rule"
        " itself why it has none: without_cel=WithoutCel...."
    )
    assert not (has_form and rule.without_cel), f"{rule.name} has a form: take without_cel out of the rule"
