"""Exit codes of a pod's container with torchrun 2.15, for tests that imitate it.

Recorded with torch 2.15.0 on 2026-11-26. `make test-torch` compares them with the real torchrun (`tests/pytorch/real_launch.py` and
`real_training.py`).
"""

from __future__ import annotations

ALONE = 1
"""torchrun as the container's command: after SIGTERM, when its workers end because another pod was interrupted, and after a crash."""

UNDER_THE_LAUNCHER = 143
"""`python -m flexspot_runtime.launch -- torchrun ...` after SIGTERM, and when another pod was interrupted."""

CRASH = 1
"""Either command, after a crash of a worker."""

KILLED = 137
"""A container whose processes were all killed, as the kubelet reports it: 128 plus the number of SIGKILL."""
