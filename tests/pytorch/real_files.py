"""Real torch, safetensors and numpy write to a checkpoint's files and read from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import safetensors.torch
import torch
import torch_protocol
from flexspot_runtime import Checkpointer, CheckpointReader, CheckpointWriter, LocalFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STATE = {"weight": torch.arange(300_000.0).reshape(3, -1), "step": 7}


def saved(folder: Path, write: Callable[[CheckpointWriter], None], ahead: int = 2 << 30) -> CheckpointReader:
    Checkpointer(LocalFolder(folder)).save(1, write)
    checkpointer = Checkpointer(LocalFolder(folder), read_ahead_bytes=ahead)
    marker = checkpointer.newest_valid()
    assert marker
    return checkpointer.reader(marker)


@pytest.mark.parametrize("ahead", [2 << 30, 0])
@pytest.mark.parametrize("seekable", [False, True])
@pytest.mark.parametrize("new_format", [False, True])
def test_torch_saves_and_loads(tmp_path: Path, ahead: int, *, seekable: bool, new_format: bool) -> None:
    def write(writer: CheckpointWriter) -> None:
        with writer.file("state.pt", seekable=seekable) as file:
            torch.save(STATE, file, _use_new_zipfile_serialization=new_format)

    with saved(tmp_path, write, ahead).file("state.pt") as file:
        loaded = torch.load(file, weights_only=True)
    assert torch.equal(loaded["weight"], STATE["weight"])
    assert loaded["step"] == 7


def test_exported_programs_and_safetensors_and_arrays_come_back(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 2)

    def write(writer: CheckpointWriter) -> None:
        with writer.file("program.pt2", seekable=True) as file:
            torch.export.save(torch.export.export(model, (torch.ones(1, 4),)), file)
        writer.put("model.safetensors", safetensors.torch.save(model.state_dict()))
        with writer.file("arrays.npz") as file:
            np.savez(file, weight=STATE["weight"].numpy())

    reader = saved(tmp_path, write)
    with reader.file("program.pt2") as file:
        assert torch.equal(torch.export.load(file).module()(torch.ones(1, 4)), model(torch.ones(1, 4)))
    assert torch.equal(safetensors.torch.load(reader.get("model.safetensors"))["weight"], model.weight)
    with reader.file("arrays.npz") as file:
        assert np.array_equal(np.load(file)["weight"], STATE["weight"].numpy())


class Recorded:
    """A file that records which of its methods and attributes are used."""

    def __init__(self, file: object) -> None:
        self.file = file
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> object:
        self.asked.add(name)
        return getattr(self.file, name)


def test_torch_and_its_double_use_the_same_methods_of_a_file(tmp_path: Path) -> None:
    """`make test` uses only the double."""
    real: list[set[str]] = []
    double: list[set[str]] = []

    def write(writer: CheckpointWriter) -> None:
        with writer.file("real.pt") as file:
            recorded: Any = Recorded(file)
            torch.save(STATE, recorded)
            real.append(recorded.asked)
        with writer.file("double.pt") as file:
            noted: Any = Recorded(file)
            torch_protocol.save(b"content", noted)
            double.append(noted.asked)

    saved(tmp_path, write)
    assert real == double == [{"write", "flush"}]
