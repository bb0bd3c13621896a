"""Exits of torchrun 2.15, which `make test-torch` checks on the real one, for tests that imitate it: exit codes of a pod's container.

`tests/pytorch/real_launch.py` and `real_training.py` compare these with torchrun itself; recorded with torch 2.15.0 on 2026-11-26.
"""

from __future__ import annotations

ALONE = 1
"""torchrun as the container's command: after SIGTERM, and when its workers end because another pod was interrupted. A crash, too."""

UNDER_THE_LAUNCHER = 143
"""`python -m flexspot_runtime.launch -- torchrun ...` in both of these cases."""

CRASH = 1
"""Either, when a worker crashed."""

KILLED = 137
"""A container whose processes were all killed, as the kubelet tells it: 128 and the number of SIGKILL."""
