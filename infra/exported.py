"""What a stack exports: outputs of its program, or of the component that its platform is in."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator

_INTO: ContextVar[dict[str, pulumi.Input[Any]] | None] = ContextVar("exported_into", default=None)


def export(name: str, value: pulumi.Input[Any]) -> None:
    """Adds an output to the stack; inside of `parts_of`, to what that yields."""
    into = _INTO.get()
    if into is None:
        pulumi.export(name, value)
    else:
        into[name] = value


@contextmanager
def parts_of(component: pulumi.ComponentResource) -> Generator[dict[str, pulumi.Input[Any]]]:
    """Makes every resource that is declared without a parent a child of `component`, and yields what is exported meanwhile.

    The SDK (3.259, runtime/resource.py) gives such a resource the root resource of its context for a parent. Tasks keep the context in
    which they began.
    """
    exported: dict[str, pulumi.Input[Any]] = {}
    root, into = ROOT.set(component), _INTO.set(exported)
    try:
        yield exported
    finally:
        ROOT.reset(root)
        _INTO.reset(into)
