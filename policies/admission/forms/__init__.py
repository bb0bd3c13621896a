"""The forms in CEL, by subject: each a `Form` under its rule's name in capitals.

A rule has none if it is about objects that only the platform's program creates, if it compares objects with one another, or if the API
server or Kueue already sees to it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from policies.admission.form import Form


@cache
def all_forms() -> tuple[Form, ...]:
    """Every form, by code of its rule. Raises TypeError for a form that stands under another name than its rule's."""
    found: list[Form] = []
    for listed in iter_modules(__path__):
        module = import_module(f"{__name__}.{listed.name}")
        for name, form in vars(module).items():
            if isinstance(form, Form):
                if name != form.rule.name.replace("-", "_").upper():
                    raise TypeError(f"{module.__name__}.{name} holds the form of the rule {form.rule.name}; name it after that rule")
                found.append(form)
    return tuple(sorted(found, key=lambda form: form.rule.code))
