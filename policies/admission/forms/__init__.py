"""The forms in CEL, one a file: the file is named after the rule and holds it as FORM. A rule without one says why itself."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from policies.admission.form import Form


@cache
def all_forms() -> tuple[Form, ...]:
    """Every form, by code of its rule. Raises TypeError for a file in this folder that holds none."""
    found: list[Form] = []
    for module in iter_modules(__path__):
        form = getattr(import_module(f"{__name__}.{module.name}"), "FORM", None)
        if not isinstance(form, Form) or form.rule.name.replace("-", "_") != module.name:
            raise TypeError(f"policies/admission/forms/{module.name}.py holds no FORM of the rule {module.name.replace('_', '-')}")
        found.append(form)
    return tuple(sorted(found, key=lambda form: form.rule.code))
