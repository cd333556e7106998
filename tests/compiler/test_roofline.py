"""The least time that a program can take is far below any that is measured, and far above made-up ones."""

import pytest

from tilewright.compiler import ir, roofline, topi

AVX512 = {"features": ["avx", "avx2", "avx512f", "fma", "sse2"], "l2": 1 << 20, "l3": 32 << 20}
LLVM = {"kind": "llvm"}
AVX = {"features": ["avx", "avx2", "fma", "sse2"], "l3": 32 << 20}


def matmul(n: int, dtype: str = "float32") -> ir.PrimFunc:
    return topi.create({"op": "matmul", "m": n, "n": n, "k": n, "dtype": dtype})


def gflops(func: ir.PrimFunc, seconds: float) -> float:
    return ir.flop_count(func) / seconds / 1e9


def test_the_bound_of_a_product_is_its_steps_by_the_widest_vectors() -> None:
    least = roofline.least_seconds(matmul(256), LLVM, AVX512)
    assert least == pytest.approx(256**3 / roofline.SLACK / (16 * roofline.UNITS * roofline.CLOCK))


@pytest.mark.parametrize(("facts", "most"), [(AVX512, 4_000), (AVX, 2_000), ({}, 15_000)])
def test_no_core_is_a_fifth_as_fast_as_the_bound(facts: dict[str, object], most: float) -> None:
    assert most / 5 < gflops(matmul(512), roofline.least_seconds(matmul(512), LLVM, facts)) < most


def test_a_nanosecond_is_below_the_bound_of_a_small_product() -> None:
    assert roofline.least_seconds(matmul(16), LLVM, AVX512) > 1e-9


def test_threads_share_the_work() -> None:
    one, eight = (roofline.least_seconds(matmul(256), {**LLVM, "num-threads": n}, AVX512) for n in (1, 8))
    assert one / eight == pytest.approx(8)


def test_narrow_elements_are_done_more_at_a_time() -> None:
    narrow, wide = (roofline.least_seconds(matmul(256, t), LLVM, AVX512) for t in ("int8", "float32"))
    assert wide / narrow == pytest.approx(4)


def test_a_reported_peak_makes_the_bound_closer_and_a_false_one_does_not_loosen_it() -> None:
    plain, measured, boast = (
        roofline.least_seconds(matmul(256), LLVM, {**AVX512, **peak})
        for peak in ({}, {"peak_flops": 1e11}, {"peak_flops": 1e30})
    )
    assert measured == pytest.approx(2 * 256**3 / roofline.SLACK / (roofline.SLACK * 1e11))
    assert boast == plain


@pytest.mark.parametrize("peak", [float("nan"), float("inf"), -1.0, 0, "fast", True, None])
def test_a_peak_that_is_none_is_not_believed(peak: object) -> None:
    plain = roofline.least_seconds(matmul(64), LLVM, AVX512)
    assert roofline.least_seconds(matmul(64), LLVM, {**AVX512, "peak_flops": peak}) == plain


def test_an_output_larger_than_the_caches_is_written_at_the_memorys_pace() -> None:
    func = topi.create({"op": "elementwise", "shape": [1 << 14, 1 << 14], "dtype": "float32"})
    plain = roofline.least_seconds(func, LLVM, AVX512)
    measured = roofline.least_seconds(func, LLVM, {**AVX512, "peak_bytes_per_second": 1e10})
    written = 4.0 * (1 << 28)
    assert (plain, measured) == (
        pytest.approx(written / (128 * roofline.CLOCK)),
        pytest.approx((written - roofline.SLACK * (32 << 20)) / (roofline.SLACK * 1e10)),
    )


def test_padding_may_be_left_out() -> None:
    """Of a 3 by 3 window around one pixel, eight positions are padding: a schedule need not compute them."""
    conv = {"op": "conv2d", "n": 1, "h": 1, "w": 1, "ci": 64, "co": 64, "kh": 3, "kw": 3, "pad": 1}
    func = topi.create({**conv, "dtype": "float32"})
    assert roofline.compulsory_steps(func) < 64 * 64


@pytest.mark.parametrize(
    ("target", "facts"), [({"kind": "cuda"}, AVX512), (LLVM, {**AVX512, "accelerator": "a board"})]
)
def test_of_a_device_that_is_no_processor_only_its_own_peaks_are_known(
    target: dict[str, object], facts: dict[str, object]
) -> None:
    plain, measured = (
        roofline.least_seconds(matmul(1024), target, {**facts, **peak}) for peak in ({}, {"peak_flops": 1e14})
    )
    assert (plain, measured) == (
        pytest.approx(2 / roofline.CLOCK),
        pytest.approx(2 * 1024**3 / roofline.SLACK / (roofline.SLACK * 1e14)),
    )
