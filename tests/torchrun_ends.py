"""How torchrun of torch 2.15 ends, as `make test-torch` sees of the real one, for the tests that play it: exit codes of a pod's container.

`tests/pytorch/real_launch.py` and `real_training.py` hold these against torchrun itself; recorded with torch 2.15.0 on 2026-11-26.
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
