from __future__ import annotations

import pytest
from flexspot_runtime.sealed import TornRecordError, seal, unseal
from hypothesis import given
from hypothesis import strategies as st

RECORD = seal("checkpoint", {"step": 7, "attempt": "abc"})


def test_a_whole_record_is_read() -> None:
    assert unseal("checkpoint", RECORD) == {"step": 7, "attempt": "abc"}


@given(length=st.integers(0, len(RECORD) - 1))
def test_a_record_that_was_cut_is_torn(length: int) -> None:
    with pytest.raises(TornRecordError):
        unseal("checkpoint", RECORD[:length])


@given(bit=st.integers(0, 8 * len(RECORD) - 1))
def test_a_record_with_any_bit_flipped_is_torn(bit: int) -> None:
    flipped = bytearray(RECORD)
    flipped[bit // 8] ^= 1 << bit % 8

    with pytest.raises(TornRecordError):
        unseal("checkpoint", bytes(flipped))


@given(more=st.binary(min_size=1, max_size=5))
def test_a_record_with_something_behind_it_is_torn(more: bytes) -> None:
    with pytest.raises(TornRecordError):
        unseal("checkpoint", RECORD + more)


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"{}"], ids=["nothing", "zeros, as a disk leaves after a power cut", "others"])
def test_other_content_is_torn(content: bytes) -> None:
    with pytest.raises(TornRecordError):
        unseal("checkpoint", content)


def test_a_record_of_another_kind_is_torn() -> None:
    with pytest.raises(TornRecordError, match="no shard record"):
        unseal("shard", RECORD)
