"""Work in threads: every task once, errors told, nobody waits for helpers that never come."""

import os
import subprocess
import sys
import threading
import time

import pytest

from privmeasure.threads import ahead, in_threads


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("tasks", [0, 1, 2, 100])
def test_every_task_is_done_once(threads, tasks):
    done = []
    in_threads(done.append, tasks, threads)
    assert sorted(done) == list(range(tasks))


def test_several_tasks_are_done_at_a_time():
    together = threading.Barrier(4, timeout=30)
    in_threads(lambda _: together.wait() and None, 4, 4)


@pytest.mark.parametrize("threads", [2, 16])
def test_an_error_is_told_and_ends_the_work(threads):
    done = []

    def work(task):
        if task == 5:
            raise LookupError("five")
        time.sleep(1e-3)
        done.append(task)

    with pytest.raises(LookupError, match="five"):
        in_threads(work, 10_000, threads)
    assert len(done) < 1000
    count = len(done)
    time.sleep(0.05)
    assert len(done) == count  # nobody works on


def test_tasks_inside_tasks_do_not_wait_for_each_other():
    done = []

    def inner(task):
        time.sleep(1e-4)
        done.append(task)

    in_threads(lambda _: in_threads(lambda _: in_threads(inner, 4, 16), 4, 16), 64, 300)
    assert len(done) == 64 * 4 * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_has_helpers_of_its_own():
    code = (
        "import os, warnings\n"
        "from privmeasure.threads import in_threads\n"
        "warnings.simplefilter('ignore')\n"
        "in_threads(lambda task: None, 8, 4)\n"
        "if os.fork() == 0:\n"
        "    done = []\n    in_threads(done.append, 100, 4)\n    os._exit(0 if len(done) == 100 else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order_and_few_are_held(threads):
    taken = []

    def items():
        for i in range(50):
            taken.append(i)
            yield i

    results = ahead(lambda i: (time.sleep(1e-3 * (i % 3)), i)[1], items(), threads)
    for i, result in enumerate(results):
        assert result == i
        assert len(taken) <= i + threads + 2
    results = ahead(lambda i: i, items(), threads)
    next(results)
    results.close()  # whoever goes away leaves nothing behind


def test_an_error_of_the_items_is_told():
    def items():
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(ahead(lambda i: i, items(), 3))
