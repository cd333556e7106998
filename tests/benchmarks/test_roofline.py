import pytest
from bench.roofline import Demand, Limits, bound
from bench.workloads import W

LIMITS = Limits(
    peaks={"float32": 100e9, "int8": 400e9},
    capacity={"L1": 1 << 15, "L2": 1 << 20, "memory": 0},
    bandwidth={
        "L1": {"read": 400e9, "copy": 200e9, "triad": 300e9},
        "L2": {"read": 80e9, "copy": 40e9, "triad": 60e9},
        "memory": {"read": 20e9, "copy": 10e9, "triad": 12e9},
    },
)


@pytest.mark.parametrize(
    ("size", "level"), [(1, "L1"), (1 << 15, "L1"), (1 << 16, "L2"), ((1 << 20) + 1, "memory")]
)
def test_a_working_set_lives_in_the_first_cache_that_holds_it(size: int, level: str) -> None:
    assert LIMITS.level(size) == level


@pytest.mark.parametrize(
    ("written", "rate"), [(0.0, 20e9), (1 / 3, 12e9), (0.5, 10e9), (1.0, 10e9), (1 / 6, 15e9)]
)
def test_the_time_of_a_byte_is_linear_between_read_triad_and_copy(written: float, rate: float) -> None:
    assert LIMITS.rate("memory", written) == pytest.approx(rate)


def test_a_dense_workload_is_bound_by_the_peak_of_its_dtype() -> None:
    demand = Demand("float32", flops=2_000_000, read=8_000, written=4_000)
    found = bound(demand, LIMITS)
    assert found is not None
    assert (found.by, found.level, found.seconds) == ("compute", "L1", pytest.approx(2e-5))
    narrow = bound(Demand("uint8", 2_000_000, 8_000, 4_000), LIMITS)
    assert narrow is not None and narrow.seconds == pytest.approx(5e-6)


def test_a_thin_workload_is_bound_by_the_bandwidth_of_its_level() -> None:
    found = bound(Demand("float32", flops=1_000, read=10_000_000, written=10_000_000), LIMITS)
    assert found is not None
    assert (found.by, found.level, found.seconds) == ("memory", "memory", pytest.approx(2e-3))


def test_a_dtype_without_a_known_peak_has_no_bound() -> None:
    assert bound(Demand("bfloat16", 1, 1, 1), LIMITS) is None


def test_the_demand_of_w1_is_its_formula() -> None:
    demand = Demand.of(W[0].program())
    assert (demand.dtype, demand.flops, demand.read, demand.written) == ("float32", 2 << 30, 8 << 20, 4 << 20)
    assert demand.intensity == pytest.approx((2 << 30) / (12 << 20))
