"""The whole C text of small kernels."""

from tilewright.compiler import te
from tilewright.compiler.codegen.c import generator
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.runtime import ParamInfo, WorkspaceInfo
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target

AVX2 = Target.parse("c -mcpu=x86-64-v3")
HEADERS = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

"""
MACROS = """\
#if defined(__GNUC__) && !defined(__clang__)
#define PRAGMA(text) _Pragma(#text)
#define UNROLL(n) PRAGMA(GCC unroll n)
#define VECTOR_LOOP PRAGMA(GCC unroll 1)
#elif defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#define VECTOR_LOOP
#else
#define UNROLL(n)
#define VECTOR_LOOP
#endif

"""


def saxpy(n: int) -> PrimFunc:
    x, y = te.placeholder((n,), "float32", name="X"), te.placeholder((n,), "float32", name="Y")
    return te.create_prim_func([x, y, te.compute((n,), lambda i: x[i] * 2.0 + y[i], name="Z")], name="saxpy")


def test_a_serial_loop() -> None:
    assert generator.lower(saxpy(100), AVX2).text == HEADERS + (
        "/* saxpy\n"
        " * for c -mcpu=x86-64-v3 -num-threads=1 -math=reassoc -l1d=32768 -l2=262144 -l3=8388608\n"
        " *\n"
        " *   X  float32[100]  in\n"
        " *   Y  float32[100]  in\n"
        " *   Z  float32[100]  out\n"
        " */\n"
        "void saxpy(const float *restrict X, const float *restrict Y, float *restrict Z)\n"
        "{\n"
        "    for (int64_t i = 0; i < 100; ++i) {\n"
        "        /* Z */\n"
        "        Z[i] = X[i] * 2.0f + Y[i];\n"
        "    }\n"
        "}\n"
    )


def product() -> PrimFunc:
    """A register tile of 2 rows of 8, whose last one has a row too many."""
    a, b = te.placeholder((5, 7), "int32", name="A"), te.placeholder((7, 8), "int32", name="B")
    r = te.reduce_axis((0, 7), name="k")
    c = te.compute((5, 8), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    sch = Schedule(te.create_prim_func([a, b, c], name="product"))
    write = sch.cache_write(sch.get_block("C"), 0, "register")
    i, j, k = sch.get_loops(sch.get_block("C"))
    rows, row = sch.split(i, [None, 2])
    sch.reorder(rows, k, row, j)
    sch.vectorize(j)
    sch.unroll(row)
    w0, w1 = sch.reverse_compute_at(write, rows)
    sch.vectorize(w1)
    sch.unroll(w0)
    return sch.func


def padded() -> PrimFunc:
    """Reads that a condition guards, of 16-bit floats, into an intermediate in a workspace."""
    h = te.placeholder((3, 5), "bfloat16", name="H")
    p = te.compute(
        (5, 7),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < 4, j >= 1, j < 6), h[i - 1, j - 1] * 0.1, 0.0),
        name="P",
    )
    g = te.compute((7,), lambda j: te.floor(te.maximum(p[2, j], p[3, j])), name="G")
    return te.create_prim_func([h, g], name="padded")


PRODUCT = """\
static inline int64_t tw_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* product
 * for c -mcpu=x86-64-v3 -num-threads=1 -math=strict -l1d=32768 -l2=262144 -l3=8388608
 *
 *   A  int32[5, 7]  in
 *   B  int32[7, 8]  in
 *   C  int32[5, 8]  out
 */
void product(const int32_t *restrict A, const int32_t *restrict B, int32_t *restrict C)
{
    _Alignas(64) int32_t C_register[16]; /* register int32[2, 8] */
    for (int64_t i_0 = 0; i_0 < 3; ++i_0) {
        if (i_0 * 2 < 4) { /* a whole tile */
            UNROLL(2)
            for (int64_t i_1 = 0; i_1 < 2; ++i_1) { /* unrolled */
                VECTOR_LOOP
                for (int64_t j = 0; j < 8; ++j) { /* vectorized */
                    /* C_init */
                    C_register[i_1 * 8 + j] = 0;
                }
            }
            for (int64_t k = 0; k < 7; ++k) {
                UNROLL(2)
                for (int64_t i_1 = 0; i_1 < 2; ++i_1) { /* unrolled */
                    VECTOR_LOOP
                    for (int64_t j = 0; j < 8; ++j) { /* vectorized */
                        /* C */
                        C_register[i_1 * 8 + j] = (int32_t)((uint32_t)C_register[i_1 * 8 + j] + (uint32_t)A[i_0 * 14 + i_1 * 7 + k] * (uint32_t)B[k * 8 + j]);
                    }
                }
            }
            UNROLL(2)
            for (int64_t C_write_0_1 = 0; C_write_0_1 < 2; ++C_write_0_1) { /* unrolled */
                VECTOR_LOOP
                for (int64_t C_write_1_1 = 0; C_write_1_1 < 8; ++C_write_1_1) { /* vectorized */
                    /* C_write */
                    C[i_0 * 16 + C_write_0_1 * 8 + C_write_1_1] = C_register[C_write_0_1 * 8 + C_write_1_1];
                }
            }
        } else { /* a tile at an edge */
            for (int64_t i_1 = 0; i_1 < tw_min(2, 5 - i_0 * 2); ++i_1) { /* unrolled */
                VECTOR_LOOP
                for (int64_t j = 0; j < 8; ++j) { /* vectorized */
                    /* C_init */
                    C_register[i_1 * 8 + j] = 0;
                }
            }
            for (int64_t k = 0; k < 7; ++k) {
                for (int64_t i_1 = 0; i_1 < tw_min(2, 5 - i_0 * 2); ++i_1) { /* unrolled */
                    VECTOR_LOOP
                    for (int64_t j = 0; j < 8; ++j) { /* vectorized */
                        /* C */
                        C_register[i_1 * 8 + j] = (int32_t)((uint32_t)C_register[i_1 * 8 + j] + (uint32_t)A[i_0 * 14 + i_1 * 7 + k] * (uint32_t)B[k * 8 + j]);
                    }
                }
            }
            for (int64_t C_write_0_1 = 0; C_write_0_1 < tw_min(2, 5 - i_0 * 2); ++C_write_0_1) { /* unrolled */
                VECTOR_LOOP
                for (int64_t C_write_1_1 = 0; C_write_1_1 < 8; ++C_write_1_1) { /* vectorized */
                    /* C_write */
                    C[i_0 * 16 + C_write_0_1 * 8 + C_write_1_1] = C_register[C_write_0_1 * 8 + C_write_1_1];
                }
            }
        }
    }
}
"""  # noqa: E501

PADDED = """\
static inline float tw_f32_of_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint16_t tw_bf16_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)(x != x ? (bits >> 16 & 0x8000u) | 0x7fc0u : rounded);
}

static inline float tw_round_bf16(float x)
{
    return tw_f32_of_bf16(tw_bf16_of_f32(x));
}

/* NaN where one of them is NaN */
static inline float tw_max_f32(float a, float b)
{
    return a != a || a > b ? a : b;
}

/* padded
 * for c -mcpu=x86-64-v3 -num-threads=1 -math=reassoc -l1d=32768 -l2=262144 -l3=8388608
 *
 *   H  bfloat16[3, 5]  in
 *   G  bfloat16[7]     out
 *   P  bfloat16[5, 7]  workspace, 64-byte aligned
 */
void padded(const uint16_t *restrict H, uint16_t *restrict G, uint16_t *restrict P)
{
    for (int64_t i = 0; i < 5; ++i) {
        for (int64_t j = 0; j < 7; ++j) {
            /* P */
            P[i * 7 + j] = tw_bf16_of_f32(0 < i && i < 4 && 0 < j && j < 6 ? tw_round_bf16(tw_f32_of_bf16(H[i * 5 + j - 6]) * 0.100097656f) : 0.0f);
        }
    }
    for (int64_t j = 0; j < 7; ++j) {
        /* G */
        G[j] = tw_bf16_of_f32(floorf(tw_max_f32(tw_f32_of_bf16(P[j + 14]), tw_f32_of_bf16(P[j + 21]))));
    }
}
"""  # noqa: E501


def test_a_register_tile_with_a_tail() -> None:
    strict = Target.parse("c -mcpu=x86-64-v3 -math=strict")
    start = HEADERS + "#pragma STDC FP_CONTRACT OFF\n\n" + MACROS
    assert generator.lower(product(), strict).text == start + PRODUCT


def test_guarded_reads_of_16_bit_floats() -> None:
    assert generator.lower(padded(), AVX2).text == HEADERS + PADDED


def test_the_arguments_are_the_parameters_and_then_the_workspaces() -> None:
    lowered = generator.lower(padded(), AVX2)
    assert (lowered.name, lowered.params, lowered.workspaces) == (
        "padded",
        (ParamInfo("H", "bfloat16", (3, 5), False), ParamInfo("G", "bfloat16", (7,), True)),
        (WorkspaceInfo(70),),
    )


def test_equal_programs_give_equal_texts() -> None:
    first, second = (generator.lower(product(), AVX2).text for _ in range(2))
    assert first == second


def test_names_that_mean_something_in_c_are_changed() -> None:
    a = te.placeholder((4,), "float32", name="int")
    b = te.compute((4,), lambda double: te.sin(a[double]), name="sinf")
    func = te.create_prim_func([a, te.compute((4,), lambda sin: b[sin] + 1.0, name="NAN")], name="sin")
    text = generator.lower(func, AVX2).text
    assert text[text.index("void") :] == (
        "void sin_(const float *restrict int_, float *restrict NAN_, float *restrict sinf_)\n"
        "{\n"
        "    for (int64_t double_ = 0; double_ < 4; ++double_) {\n"
        "        /* sinf_ */\n"
        "        sinf_[double_] = sinf(int_[double_]);\n"
        "    }\n"
        "    for (int64_t sin__1 = 0; sin__1 < 4; ++sin__1) {\n"
        "        /* NAN_ */\n"
        "        NAN_[sin__1] = sinf_[sin__1] + 1.0f;\n"
        "    }\n"
        "}\n"
    )
