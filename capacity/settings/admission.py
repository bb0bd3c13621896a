"""What the API server does with work that breaks the platform's rules."""

from __future__ import annotations

from enum import StrEnum

from capacity.records import Record


class AdmissionMode(StrEnum):
    """What is done in the teams' namespaces. In all others whoever sends what breaks a rule is warned, unless it is NONE.

    ENFORCE: what breaks a rule is refused. WARN: it is taken, and its sender is warned. NONE: the API server gets no rules.
    """

    ENFORCE = "enforce"
    WARN = "warn"
    NONE = "none"


class Admission(Record):
    """The rules that the API server itself holds.

    `default_owner_labels` gives work in a team's namespace the owner labels of the namespace where it has none of its own, which Kubernetes
    1.36 can; default: true where the version of the stack says so.
    """

    mode: AdmissionMode = AdmissionMode.ENFORCE
    default_owner_labels: bool | None = None
