import math

import numpy as np
import pytest
from bench.measure import SETTLE, Contender, geometric_mean, interleaved, outside, placed, ratio
from bench.run import summary


@pytest.mark.parametrize(("n", "left_out"), [(5, 0), (6, 0), (9, 1), (20, 5), (21, 5), (100, 39)])
def test_the_interval_leaves_out_as_many_pairs_as_the_tables_of_order_statistics_say(
    n: int, left_out: int
) -> None:
    # Conover, Practical Nonparametric Statistics: ranks 6 and 15 of 20, 6 and 16 of 21, 40 and 61 of 100.
    assert outside(n) == left_out


@pytest.mark.parametrize("n", range(6, 60))
def test_the_interval_covers_the_median_with_95_percent_and_one_pair_fewer_would_not(n: int) -> None:
    def missed(k: int) -> float:
        return 2 * sum(math.comb(n, i) for i in range(k + 1)) * 0.5**n

    assert missed(outside(n)) <= 0.05 < missed(outside(n) + 1)


def test_a_ratio_is_their_time_over_ours_by_pairs() -> None:
    assert ratio([1.0, 2.0, 4.0], [3.0, 4.0, 4.0]) == (2.0, 1.0, 3.0)


def test_pairs_of_a_slow_contender_that_ran_once_are_as_many_as_its_samples() -> None:
    assert ratio([1.0, 2.0, 4.0], [30.0]) == (30.0, 30.0, 30.0)


def test_geometric_means() -> None:
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    assert math.isnan(geometric_mean([]))


def test_arrays_are_placed_at_the_offset_with_their_contents() -> None:
    arrays = [np.arange(6, dtype=np.int8).reshape(2, 3), np.ones((3, 5), np.float32)]
    for offset in (0, 16):
        copies = placed(arrays, offset)
        assert [a.ctypes.data % 4096 for a in copies] == [offset, offset]
        assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(arrays, copies, strict=True))


def test_each_placement_makes_every_contender_anew_on_arrays_of_its_own() -> None:
    made: list[tuple[str, int]] = []

    def contender(name: str) -> Contender:
        def make(arrays: object) -> object:
            made.append((name, arrays[0].ctypes.data % 64))  # type: ignore[index]
            return lambda: sum(range(20_000))

        return Contender(make, lambda _, a: a[0])  # type: ignore[arg-type]

    arrays = [np.zeros(4, np.float32)]
    samples = interleaved(
        {"a": (contender("a"), arrays), "b": (contender("b"), arrays)}, rounds=4, placements=3
    )
    assert {name: len(s) for name, s in samples.items()} == {"a": 4, "b": 4}
    assert made == [("a", 0), ("b", 0), ("a", 16), ("b", 16), ("a", 0), ("b", 0)]


def test_on_threads_the_first_call_after_a_rest_is_kept_apart_from_calls_in_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests, calls = [0.0], [0]
    monkeypatch.setattr("bench.measure.time.sleep", rests.append)
    monkeypatch.setattr("bench.measure.SAMPLE_SECONDS", 1e-4)

    def call() -> None:
        calls[0] += 1

    contender = Contender(lambda _: call, lambda _, a: a[0])
    rested: dict[str, list[float]] = {}
    samples = interleaved({"a": (contender, [np.zeros(4)])}, 3, 1, True, rested)
    assert (len(samples["a"]), len(rested["a"]), rests[1:]) == (3, 3, [SETTLE] * 3)
    assert calls[0] > 10


def test_the_best_peer_has_the_lowest_median_and_ours_is_the_tuned_kernel() -> None:
    samples = {"default": [4.0], "tuned": [2.0], "numpy": [6.0], "torch": [3.0], "round": [1.0]}
    found = summary(samples, ["numpy", "torch"])
    assert (found["ours"], found["best_peer"]) == ("tuned", "torch")
    assert {n: r["median"] for n, r in found["ratio"].items()} == {
        "default": 2.0,
        "numpy": 3.0,
        "torch": 1.5,
        "round": 0.5,
    }


def test_without_a_tuned_kernel_the_default_stands_in() -> None:
    assert summary({"default": [4.0], "numpy": [6.0]}, ["numpy"])["ours"] == "default"
