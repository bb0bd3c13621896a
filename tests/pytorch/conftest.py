"""Make the runtime importable for the programs that these tests start. This environment has not installed it."""

from __future__ import annotations

import os
from pathlib import Path

RUNTIME = Path(__file__).parents[2] / "runtime"

os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(RUNTIME), os.environ.get("PYTHONPATH", "")]))
# The tests' ranks are processes on CPUs, although the machine may have a GPU. real_gpu.py makes it visible to its processes.
os.environ["TRIAL_GPUS"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
