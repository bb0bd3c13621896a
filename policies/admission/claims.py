"""Claims of volumes that people with a team's rights may make and delete, and which are the platform's, in CEL."""

from __future__ import annotations

from policies.admission.boundary import Boundary, problem_if
from policies.admission.cel import every, optional, text_at
from policies.admission.form import told

_CREATED, _DELETED = "request.operation == 'CREATE'", "request.operation == 'DELETE'"

_FREE = "leave it out: a class of storage makes a volume of your own"


def _static(claim: str) -> str:
    # No class at all asks for the cluster's own; an empty one for a volume that is there.
    return f"{optional(claim, 'spec', 'storageClassName')}.orValue('-') == ''"


_NAMED = text_at("object", "spec", "volumeName")
CLAIMS = Boundary(
    "volume-of-the-platform",
    "volumes that are there, and the claims of them, are the platform's",
    " + ".join(
        [
            problem_if(
                every(_CREATED, f"{_NAMED} != ''"),
                told("spec.volumeName is {name}: a volume that is there was made for somebody", _FREE, name=_NAMED),
            ),
            problem_if(
                every(_CREATED, _static("object")),
                told(
                    "spec.storageClassName is empty: it asks for a volume that is there, made for somebody", "name a class, or leave it out"
                ),
            ),
            problem_if(
                every(_CREATED, "has(object.spec.selector)"),
                told("spec.selector asks for a volume that is there, made for somebody", _FREE),
            ),
            problem_if(
                every(_DELETED, _static("oldObject")),
                told("it is a claim of the platform's, such as of checkpoints", "ask who runs the platform"),
            ),
        ]
    ),
)
"""Beyond what quotas bound: how many claims there are, and of how much storage. A claim cannot be given another volume or class later."""

CHANGES_VOLUMES = "authorizer.group('').resource('persistentvolumes').check('delete').allowed()"
"""Whether the sender may delete volumes of the cluster: who runs the platform makes and deletes its claims, as `up` and `destroy` do."""
