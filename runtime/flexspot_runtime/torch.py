"""PyTorch integration: a job's processes as a Group, and checkpoints of a model under DDP or FSDP2. Extra: `torch`.

    with Interruption() as interruption, in_world() as group:
        model = DistributedDataParallel(Model())  # or fully_shard(Model())
        optimizer = torch.optim.AdamW(model.parameters())
        state = TorchState(model, optimizer, scheduler=scheduler)
        checkpointer = Checkpointer(LocalFolder(), group=group, sharded=True)
        run = TrainingRun(checkpointer, interruption, snapshot=state.snapshot, load=state.load)
        for step in run.steps(10_000):
            train(step)

Tried with torch 2.11 and 2.15 on CPUs over gloo (`make test-torch`), and saving with 2.11 on one H200.
"""

from __future__ import annotations

import os
import pickle
import random
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.tensor import DTensor

from flexspot_runtime.group import Group
from flexspot_runtime.interruption import Interrupted
from flexspot_runtime.torch_storage import ShardReader, ShardWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from flexspot_runtime.contents import CheckpointReader, CheckpointWriter

_LOST = re.compile(r"closed by peer|reset by peer|Broken pipe|Socket closed|remote process exited", re.IGNORECASE)
"""Errors of gloo, torch's store and NCCL when a peer process is gone. Torch has no exception type for it."""


@contextmanager
def in_world(backend: str | None = None, **options: Any) -> Generator[Group]:
    """Join the processes that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe, as torchrun and flexspot_runtime.launch set them.

    backend: default gloo on the CPU, and on GPUs also NCCL, so that the ranks' agreements wait for no GPU.
    options: those of torch.distributed.init_process_group. Each rank takes the GPU of its LOCAL_RANK.

    A rank that loses another, because its machine went without a warning, ends as interrupted. If the other one crashed, the exit code of
    that one reports it.

    Raises Interrupted when a rank is lost, and torch's exceptions when the ranks do not meet.
    """
    gpus = torch.cuda.is_available()
    if gpus:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(backend or ("cpu:gloo,cuda:nccl" if gpus else "gloo"), **options)
    try:
        yield group_of_all()
    except (RuntimeError, CheckpointException) as error:
        if _LOST.search(str(error)):
            raise Interrupted("a lost rank", None) from error
        raise
    # Not after a failure: the others may wait in an operation that this rank will never join.
    dist.destroy_process_group()


def group_of_all(device: torch.device | str = "cpu") -> Group:
    """Return the Group of an initialized process group. `device`: one on which its backend can reduce."""

    def largest(number: int) -> int:
        value = torch.tensor([number], device=device, dtype=torch.int64)
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return int(value)

    def broadcast(text: str) -> str:
        values = [text]
        dist.broadcast_object_list(values, src=0, device=torch.device(device))
        return values[0]

    return Group(dist.get_rank(), dist.get_world_size(), largest, broadcast)


class Stateful(Protocol):
    """A learning-rate schedule, a data loader, a gradient scaler."""

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state."""
        ...

    def load_state_dict(self, state_dict: Any, /) -> object:
        """Restore the state."""
        ...


class TorchState:
    """All state that the next step depends on: model, optimizer, this rank's random generators, and `parts` by name.

    `snapshot` and `load` are for a TrainingRun whose Checkpointer has `sharded=True`. A replicated model (DDP, or one process) is written
    by rank 0, read by rank 0 and sent to the others. Of a sharded model (FSDP2, DTensor), each rank writes and reads its part. Everything
    else belongs to each rank. Copies stay in CPU memory until they are written. From a GPU they go to pinned memory, as large as the state,
    which the next copy reuses.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, **parts: Stateful) -> None:
        self._model = model
        self._optimizer = optimizer
        self._parts = parts
        self._divided = any(isinstance(each, DTensor) for each in model.parameters())
        # Not DefaultStager: that of torch 2.11 can be used once only, and a second copy ends in KeyError.
        self._stager, self._staged_layout = BlockingAsyncStager(), None
        # Operations of the saving thread must not mix with those of the training.
        self._own_group = dist.new_group(backend="gloo") if self._divided else None

    def snapshot(self) -> Callable[[CheckpointWriter], None]:
        """Copy the state. Return a function that writes the copy."""
        own = pickle.dumps({"random": random_state(), "parts": {name: part.state_dict() for name, part in self._parts.items()}})
        shared: Any = None
        if self._divided or _rank() == 0:
            shared = self._copied(self._shared())

        def write(writer: CheckpointWriter) -> None:
            writer.put("rank.pickle", own)
            if self._divided:
                _save_divided(shared, writer, self._own_group)
            elif shared is not None:
                with writer.file("state.pt") as file:
                    torch.save(shared, file)

        return write

    def load(self, reader: CheckpointReader) -> None:
        """Restore everything."""
        if self._divided:
            shared = self._shared()
            dcp.load(shared, storage_reader=ShardReader(reader), process_group=self._own_group)
        else:
            shared = _object_of_rank_0(lambda: _loaded(reader))
        set_state_dict(self._model, self._optimizer, model_state_dict=shared["model"], optim_state_dict=shared["optimizer"])
        own = pickle.loads(reader.get("rank.pickle"))  # noqa: S301 -- written by this program, and verified
        for name, part in self._parts.items():
            part.load_state_dict(own["parts"][name])
        set_random_state(own["random"])

    def _copied(self, state: dict[str, Any]) -> dict[str, Any]:
        layout = _layout(state)
        if layout != self._staged_layout:
            # The first copy, or layers or optimizer state were added: pinned memory fits one layout only.
            on_gpu = any(each.is_cuda for each in self._model.parameters())
            self._stager, self._staged_layout = BlockingAsyncStager(cache_staged_state_dict=on_gpu), layout
        return self._stager.stage(state)

    def _shared(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self._model, self._optimizer)
        return {"model": model, "optimizer": optimizer}


def _layout(state: Any) -> Any:
    """Return the layout of a state: a copy can reuse the memory of another copy with the same layout."""
    if isinstance(state, torch.Tensor):
        return tuple(state.shape), state.dtype
    if isinstance(state, dict):
        return {key: _layout(each) for key, each in state.items()}
    if isinstance(state, tuple):
        return _layout(list(state))
    if isinstance(state, list):
        return [_layout(each) for each in state]
    return type(state)


def _save_divided(state: dict[str, Any], writer: CheckpointWriter, group: dist.ProcessGroup | None) -> None:
    try:
        dcp.save(state, storage_writer=ShardWriter(writer), process_group=group)
    except CheckpointException as error:
        failures = [failure for failure, _ in error.failures.values()]
        if all(isinstance(failure, OSError) for failure in failures):
            raise OSError(f"ranks {sorted(error.failures)} could not write: {failures[0]}") from error
        raise


def _loaded(reader: CheckpointReader) -> Any:
    with reader.file("state.pt") as file:
        return torch.load(file, map_location="cpu", weights_only=False)


def _object_of_rank_0(load: Callable[[], Any]) -> Any:
    if not dist.is_initialized():
        return load()
    values = [load() if _rank() == 0 else None]
    dist.broadcast_object_list(values, src=0, device=torch.device("cpu"))
    return values[0]


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def random_state() -> dict[str, Any]:
    """Return the state of this rank's generators: Python's, torch's, its GPU's, and numpy's if it is loaded."""
    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    if numpy := sys.modules.get("numpy"):
        state["numpy"] = numpy.random.get_state()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Restore the state of this rank's generators."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    if "numpy" in state and (numpy := sys.modules.get("numpy")):
        numpy.random.set_state(state["numpy"])
