"""Rules over pools, queues and workloads, pure, and the surfaces that enforce them: engine, manifests, cluster."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
"""The directory pack, for a language host that runs it."""

PROGRAM = FOLDER / "pack"
"""The same pack as a program, which needs none."""
