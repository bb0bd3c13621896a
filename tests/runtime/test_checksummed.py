from __future__ import annotations

import pytest
from flexspot_runtime.marker import TornRecordError, decode_record, encode_record
from hypothesis import given
from hypothesis import strategies as st

RECORD = encode_record("checkpoint", {"step": 7, "attempt": "abc"})


def test_a_whole_record_is_read() -> None:
    assert decode_record("checkpoint", RECORD) == {"step": 7, "attempt": "abc"}


@given(length=st.integers(0, len(RECORD) - 1))
def test_a_record_that_was_cut_is_torn(length: int) -> None:
    with pytest.raises(TornRecordError):
        decode_record("checkpoint", RECORD[:length])


@given(bit=st.integers(0, 8 * len(RECORD) - 1))
def test_a_record_with_any_bit_flipped_is_torn(bit: int) -> None:
    flipped = bytearray(RECORD)
    flipped[bit // 8] ^= 1 << bit % 8

    with pytest.raises(TornRecordError):
        decode_record("checkpoint", bytes(flipped))


@given(more=st.binary(min_size=1, max_size=5))
def test_a_record_with_something_behind_it_is_torn(more: bytes) -> None:
    with pytest.raises(TornRecordError):
        decode_record("checkpoint", RECORD + more)


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"{}"], ids=["nothing", "zeros, as a disk leaves after a power cut", "others"])
def test_other_content_is_torn(content: bytes) -> None:
    with pytest.raises(TornRecordError):
        decode_record("checkpoint", content)


def test_a_record_of_another_kind_is_torn() -> None:
    with pytest.raises(TornRecordError, match="no shard record"):
        decode_record("shard", RECORD)
