"""The thread pool: every iteration runs once, whoever calls, from where, and after a fork."""

import ctypes
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from parallel_kernels import doubled

import tilewright as tw
from tilewright.compiler.runtime import pool

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="other systems run the loops in place")


def iterations(n: int, threads: int) -> tuple[list[int], set[int]]:
    """What was run, sorted, and by which threads."""
    done: list[int] = []
    by: set[int] = set()

    def body(begin: int, end: int, thread: int) -> None:
        done.extend(range(begin, end))
        by.add(thread)

    pool.run_parallel(body, n, threads)
    return sorted(done), by


@pytest.mark.parametrize("threads", range(1, 9))
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 63, 1000])
def test_every_iteration_runs_once(n: int, threads: int) -> None:
    done, by = iterations(n, threads)
    assert done == list(range(n))
    assert by <= set(range(min(threads, n)))


@LINUX
@pytest.mark.parametrize("n", [9, 15, 22, 23, 1000])
def test_both_halves_of_the_pieces_are_as_long(n: int) -> None:
    pieces: list[tuple[int, int]] = []
    pool.run_parallel(lambda begin, end, _: pieces.append((begin, end)), n, 2)
    pieces.sort()
    assert pieces[0][0] == 0 and pieces[-1][1] == n
    assert [end for _, end in pieces[:-1]] == [begin for begin, _ in pieces[1:]]
    assert pieces[3][1] == n // 2
    lengths = [end - begin for begin, end in pieces]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("n", [0, -1])
def test_nothing_runs_without_iterations(n: int) -> None:
    assert iterations(n, 4) == ([], set())


@pytest.mark.parametrize("threads", [1, 0, -3])
def test_one_thread_or_none_is_the_caller(threads: int) -> None:
    assert iterations(10, threads) == (list(range(10)), {0})


def test_a_loop_in_a_body_runs_in_place() -> None:
    done: Counter[tuple[int, int]] = Counter()

    def outer(begin: int, end: int, thread: int) -> None:
        for i in range(begin, end):

            def inner(first: int, last: int, which: int, i: int = i) -> None:
                assert (first, last, which) == (0, 5, 0)
                done.update((i, j) for j in range(first, last))

            pool.run_parallel(inner, 5, 3)

    pool.run_parallel(outer, 6, 3)
    assert done == Counter((i, j) for i in range(6) for j in range(5))


def test_threads_that_call_at_once_all_get_their_results() -> None:
    kernel = tw.build(doubled(64, 33), "llvm -num-threads=3")
    wrong: list[int] = []
    until = time.monotonic() + 0.5

    def call(seed: int) -> None:
        a = np.random.default_rng(seed).random((64, 33), np.float32)
        b = np.empty_like(a)
        while time.monotonic() < until:
            b[...] = np.nan
            kernel(a, b)
            if not np.array_equal(b, 2 * a):
                wrong.append(seed)

    callers = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert wrong == []


def test_the_number_of_threads_can_be_set() -> None:
    try:
        tw.set_num_threads(1)
        assert (tw.num_threads(), iterations(100, 4)) == (1, (list(range(100)), {0}))
    finally:
        tw.set_num_threads(None)
    assert tw.num_threads() is None


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True])
def test_a_number_of_threads_below_one_is_refused(n: object) -> None:
    with pytest.raises(ValueError, match="set_num_threads takes an integer of at least 1 or None, got"):
        tw.set_num_threads(n)  # type: ignore[arg-type]


def test_more_threads_than_a_pool_can_count_are_not_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(pool, "_setters", [lambda n: told.append(ctypes.c_int64(n).value)])
    monkeypatch.setattr(pool, "_given", None)
    tw.set_num_threads((1 << 64) + 1)
    assert (tw.num_threads(), told) == ((1 << 64) + 1, [(1 << 63) - 1])


@LINUX
def test_threads_can_be_started_ahead() -> None:
    assert pool.start_threads(3) >= 3


@LINUX
def test_threads_without_work_sleep() -> None:
    iterations(100, 4)
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


# ---- in processes of their own ----
def run(code: str, **environment: str) -> str:
    """What the program prints, which finds `kernel`, made for three threads, and `check()`."""
    before = """
        import os, signal, sys, threading, time
        import numpy as np
        import tilewright as tw
        from parallel_kernels import doubled
        from tilewright.compiler.runtime import pool

        kernel = tw.build(doubled(64, 33), "llvm -num-threads=3")
        a = np.random.default_rng(0).random((64, 33), np.float32)

        def check(times=50):
            for _ in range(times):
                b = np.full_like(a, np.nan)
                kernel(a, b)
                assert np.array_equal(b, 2 * a)
    """
    lines = (line.removeprefix("        ") for part in (before, code) for line in part.split("\n"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", "\n".join(lines)],
        env={"PYTHONPATH": f"{Path(tw.__file__).parents[1]}:{Path(__file__).parent}", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@LINUX
def test_the_pool_works_on_both_sides_of_a_fork() -> None:
    assert (
        run("""
        check()
        for _ in range(5):
            child = os.fork()
            check()
            if child == 0:
                grandchild = os.fork()
                check()
                os._exit(0 if grandchild == 0 else os.waitpid(grandchild, 0)[1])
            assert os.waitpid(child, 0)[1] == 0
        print("done")
    """)
        == "done\n"
    )


@LINUX
def test_the_pool_works_in_a_child_forked_in_the_middle_of_a_call() -> None:
    assert (
        run("""
        over = threading.Event()

        def calls():
            while not over.is_set():
                check(1)

        callers = [threading.Thread(target=calls) for _ in range(2)]
        for c in callers:
            c.start()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                check(20)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        over.set()
        for c in callers:
            c.join()
        print("done")
    """)
        == "done\n"
    )


@LINUX
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_pool_works_under_multiprocessing(method: str) -> None:
    assert run(f"""
        import multiprocessing, tempfile
        from parallel_kernels import called

        context = multiprocessing.get_context("{method}")
        check()
        if __name__ == "__main__":
            with context.Pool(2) as processes:
                print(processes.map(called, range(6)))
    """) == f"{[True] * 6}\n"  # fmt: skip


def test_the_environment_limits_the_threads() -> None:
    assert (
        run(
            """
        by = set()
        pool.run_parallel(lambda begin, end, thread: by.add(thread), 100, 4)
        print(tw.num_threads(), by)
        """,
            TILEWRIGHT_NUM_THREADS="1",
        )
        == "1 {0}\n"
    )


@LINUX
def test_workers_take_the_signals_of_their_own_faults_alone() -> None:
    """Fields of /proc: the mask of blocked signals, from signal 1 at its lowest bit. A thread that was not on
    a processor yet still blocks all of them, as the C library starts it."""
    assert (
        run("""
        before, began = set(os.listdir("/proc/self/task")), set()

        def body(begin, end, thread):
            began.add(thread)
            time.sleep(0.001)

        while not began >= {1, 2}:
            pool.run_parallel(body, 12, 3)
        for task in set(os.listdir("/proc/self/task")) - before:
            until = time.monotonic() + 10
            mask = ~0
            while mask >> signal.SIGSEGV - 1 & 1 and time.monotonic() < until:
                status = open(f"/proc/self/task/{task}/status").read()
                mask = int(status.split("SigBlk:")[1].split()[0], 16)
            blocked = {s.name for s in signal.Signals if mask >> s - 1 & 1}
            print(sorted({"SIGINT", "SIGTERM", "SIGALRM", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"} & blocked))
    """)
        == "['SIGALRM', 'SIGINT', 'SIGTERM']\n" * 2
    )


@LINUX
def test_a_system_that_gives_no_threads_costs_only_their_help() -> None:
    assert (
        run("""
        import resource
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used, hard))
        there = pool.start_threads(3)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        check()
        print(there)
    """)
        == "1\n"
    )


@pytest.mark.slow
@LINUX
def test_kernels_come_and_go_while_threads_call() -> None:
    assert (
        run("""
        import gc

        def life(seed):
            for n in range(60):
                rows = 5 + (seed * 7 + n) % 60
                own = tw.build(doubled(rows, 17), f"llvm -num-threads={2 + n % 4}")
                x = np.random.default_rng(n).random((rows, 17), np.float32)
                for _ in range(20):
                    y = np.full_like(x, np.nan)
                    own(x, y)
                    assert np.array_equal(y, 2 * x)
                del own
                gc.collect()

        lives = [threading.Thread(target=life, args=(n,)) for n in range(4)]
        for t in lives:
            t.start()
        for t in lives:
            t.join()
        check()
        print(len(os.listdir("/proc/self/task")) < 12)
    """)
        == "True\n"
    )
