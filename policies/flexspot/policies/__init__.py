"""Rules over pools, queues and workloads, pure, and the surfaces that enforce them: engine, manifests, cluster."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_ROOT = _PACKAGE.parents[1]

FOLDER = _ROOT if (_ROOT / "PulumiPolicy.yaml").exists() else _PACKAGE
"""The directory pack, for a language host that runs it: in a checkout `policies`, whose environment is the checkout's."""

PROGRAM = FOLDER / "pack"
"""The same pack as a program, which needs none."""
