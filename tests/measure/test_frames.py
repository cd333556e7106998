from __future__ import annotations

import socket

import pytest

from tilewright.measure import frames


def test_values_come_out_of_bytes_that_arrive_one_at_a_time() -> None:
    reader = frames.FrameReader(1000)
    data = frames.encode({"a": [1, "ü"]}) + frames.encode(None)
    assert [value for byte in data for value in reader.feed(bytes([byte]))] == [{"a": [1, "ü"]}, None]


def test_several_values_come_out_of_one_piece() -> None:
    assert list(frames.FrameReader(1000).feed(frames.encode(1) + frames.encode(2))) == [1, 2]


def test_a_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(frames.FrameError, match=r"^a frame of 2130706432 bytes, over the limit of 1000$"):
        list(frames.FrameReader(1000).feed(b"\x7f\0\0\0"))


def test_values_before_a_broken_frame_are_given() -> None:
    taken = []
    with pytest.raises(frames.FrameError, match="a frame that is not JSON"):
        for value in frames.FrameReader(1000).feed(frames.encode("good") + b"\0\0\0\x01x"):
            taken.append(value)
    assert taken == ["good"]


def test_a_number_that_is_not_finite_is_not_sent() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        frames.encode(float("nan"))


def test_receiving_takes_one_value_and_leaves_the_next() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frames.encode("first") + frames.encode("second"))
        assert (frames.receive(theirs), frames.receive(theirs)) == ("first", "second")


def test_receiving_from_a_closed_stream_gives_nothing() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(frames.encode("cut off")[:-1])
        assert frames.receive(theirs) is None
