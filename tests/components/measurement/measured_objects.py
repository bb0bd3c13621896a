"""Resources of the measurement components with some arguments. Not a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.components.measurement import KubeStateMetrics, RecordingRules

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.components.measurement import KubeStateMetricsArgs, RecordingRulesArgs

LEAST = {"namespace": "measuring", "prometheus": "annotations", "labels": {"flexspot.dev/owner": "ml"}}


def exporter(register: Callable[[Callable[[], object]], Any], **args: Any) -> Any:
    """Return the resources that KubeStateMetrics registers."""
    arguments: KubeStateMetricsArgs = {**LEAST, **args}  # pyrefly: ignore[bad-unpacking] -- a test sets any of them
    return register(lambda: KubeStateMetrics("ksm", arguments))


def rules(register: Callable[[Callable[[], object]], Any], **args: Any) -> Any:
    """Return the resources that RecordingRules registers."""
    arguments: RecordingRulesArgs = {**LEAST, **args}  # pyrefly: ignore[bad-unpacking] -- a test sets any of them
    return register(lambda: RecordingRules("rules", arguments))
