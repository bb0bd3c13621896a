"""Rules over pools, queues and workloads, pure, and the surfaces that enforce them: engine, manifests, cluster."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_ROOT = _PACKAGE.parents[1]

FOLDER = _ROOT if (_ROOT / "PulumiPolicy.yaml").exists() else _PACKAGE
"""Folder of the directory pack, for a language host that runs it. In a checkout it is `policies`, with the checkout's environment."""

PROGRAM = FOLDER / "pack"
"""The same pack as a program, which needs no environment."""
