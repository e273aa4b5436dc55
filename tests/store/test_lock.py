"""One process at a time on a run file, whatever became of the last one."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager

import pytest

from mixcma import Float, Space, minimize, resume
from mixcma.store import read
from mixcma.store.lock import Lock

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})

# A program that searches until it is told to stop; it prints when it has the file.
HOLDER = """
    import os, signal, sys
    from mixcma import Float, Space, minimize
    from mixcma.store import run_file
    run_file.WORTH_A_COMMIT = 0.0
    space = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
    calls = []
    def objective(p):
        calls.append(p)
        if len(calls) == 10:
            during()
            print("here", flush=True)
            sys.stdin.readline()
        return p["x"] ** 2 + p["y"] ** 2
    def during():
        pass
"""
SEARCH = """
    print(minimize(objective, space, budget=20, seed=1, run_file=sys.argv[1]).evaluations)
"""


def sphere(p):
    return sum(value**2 for value in p.values())


def search(path, budget=30, **options):
    return minimize(sphere, PLANE, budget=budget, seed=1, run_file=path, **options)


def lock_of(path):
    return path.with_name(path.name + ".lock")


@contextmanager
def holder(path, tmp_path, more=""):
    """A process of its own that holds the file."""
    program = tmp_path / "holder_program.py"
    program.write_text(textwrap.dedent(HOLDER) + textwrap.dedent(more) + textwrap.dedent(SEARCH))
    command = [sys.executable, str(program), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "here\n"
            yield process
        finally:
            process.kill()


def killed(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


# A second process


def test_a_second_process_is_refused_with_the_first_ones_number_and_program(path, tmp_path):
    with holder(path, tmp_path) as process:
        for call in (search, lambda path: resume(path, sphere)):
            with pytest.raises(ValueError, match=r"run_file: .* is in use") as caught:
                call(path)
            text = str(caught.value)
            assert f"process {process.pid} (" in text
            assert "holder_program.py" in text
            assert os.uname().nodename in text
            assert time.strftime("%Y-") in text
            assert str(path) in text
            assert "\n" not in text
        assert len([row for row in read(path).rows if row.finished]) == 9  # reading is allowed
        assert process.communicate("go on\n")[0] == "20\n"
    assert not lock_of(path).exists()
    assert search(path).evaluations == 30


def test_a_process_that_was_refused_leaves_the_lock_to_its_holder(path, tmp_path):
    with holder(path, tmp_path) as process:
        for _ in range(3):
            with pytest.raises(ValueError, match=f"process {process.pid} "):
                search(path)
        assert json.loads(lock_of(path).read_text())["pid"] == process.pid


@pytest.mark.parametrize("link", ["symbolic", "folder"])
def test_the_file_is_the_same_by_whatever_name(path, tmp_path, link):
    with holder(path, tmp_path):
        if link == "symbolic":
            other = tmp_path / "other.db"
            other.symlink_to(path)
        else:
            (tmp_path / "other").symlink_to(tmp_path, target_is_directory=True)
            other = tmp_path / "other" / "run.db"
        with pytest.raises(ValueError, match="is in use by process"):
            search(other)


def test_a_new_file_is_locked_before_it_is_made(path, tmp_path):
    """Of processes that begin at the same moment, each one is refused or finds the others' work."""
    program = """
        import sys
        from mixcma import Float, Space, minimize
        space = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
        def objective(p):
            return p["x"] ** 2 + p["y"] ** 2
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            print(minimize(objective, space, budget=40, seed=1, run_file=sys.argv[1]).value)
        except ValueError as error:
            print("refused" if "is in use" in str(error) else error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(4)]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate()[0].strip() for process in processes]
    finally:
        for process in processes:
            process.kill()
    expected = str(minimize(sphere, PLANE, budget=40, seed=1).value)
    assert set(answers) <= {expected, "refused"}
    assert expected in answers
    assert [row.id for row in read(path).rows if row.finished] == list(range(1, 41))


# After the end


def test_after_a_kill_the_file_can_be_opened_at_once(path, tmp_path):
    with holder(path, tmp_path) as process:
        killed(process)
        assert lock_of(path).exists()
        result = search(path)
    assert result.evaluations == 30
    assert not lock_of(path).exists()


def test_after_the_end_the_lock_file_is_gone(path):
    seen = []
    search(path, callback=lambda progress: seen.append(json.loads(lock_of(path).read_text())["pid"]))
    assert set(seen) == {os.getpid()}
    assert not lock_of(path).exists()


def test_after_an_error_an_interrupt_or_a_refusal_the_lock_file_is_gone(path):
    def callback(progress):
        raise LookupError("in the callback")

    def interrupted(p):
        raise KeyboardInterrupt

    with pytest.raises(LookupError):
        search(path, callback=callback)
    assert not lock_of(path).exists()
    assert minimize(interrupted, PLANE, budget=30, seed=1, run_file=path).stop.name == "interrupted"
    assert not lock_of(path).exists()
    with pytest.raises(ValueError, match="seed was 1 and is now 2"):
        minimize(sphere, PLANE, budget=30, seed=2, run_file=path)
    assert not lock_of(path).exists()
    with pytest.raises(ValueError, match="workers"):
        search(path, workers=0)
    assert not lock_of(path).exists()
    assert search(path).evaluations == 30


WHOLE = '{"pid": 1, "host": "h", "program": "p", "since": "2026-01-01 00:00:00"}'


@pytest.mark.parametrize("text", ["{", WHOLE, "\0" * 5000, WHOLE[:25]], ids=repr)
def test_what_a_killed_process_left_in_the_lock_file_does_not_matter(path, text):
    lock_of(path).write_text(text)
    assert search(path).evaluations == 30
    assert not lock_of(path).exists()


def test_an_empty_lock_file_is_used_and_left_empty(path):
    """Left of a power cut, or another program's."""
    lock_of(path).touch()
    assert search(path).evaluations == 30
    assert lock_of(path).read_bytes() == b""


@pytest.mark.parametrize("text", ["version = 4\n", "[]", '{"pid": 1}', '{"pid": 1, "name": "x"}', "\x7fELF"], ids=repr)
def test_a_lock_file_of_another_program_is_refused_and_left_as_it_is(tmp_path, text):
    """Such as the Cargo.lock beside a run file called Cargo."""
    other = tmp_path / "Cargo.lock"
    other.write_text(text)
    with pytest.raises(ValueError, match=r"run_file: .*Cargo needs the name Cargo.lock .* did not write; move it away"):
        search(tmp_path / "Cargo")
    assert other.read_text() == text
    assert list(tmp_path.iterdir()) == [other]


@pytest.mark.parametrize("there", [True, False])
def test_a_lock_file_that_is_a_link_is_not_followed(path, tmp_path, there):
    target = tmp_path / "target"
    if there:
        target.write_text("{")
    lock_of(path).symlink_to(target)
    with pytest.raises(ValueError, match=r"run\.db\.lock .* is a symbolic link; move it away"):
        search(path)
    assert target.exists() == there
    assert not there or target.read_text() == "{"
    assert lock_of(path).is_symlink()


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_a_lock_file_that_is_no_file_is_said_in_a_sentence(path, make):
    make(lock_of(path))
    with pytest.raises(ValueError, match=r"needs the name run\.db\.lock .*; move it away"):
        search(path)


def test_a_lock_file_that_was_replaced_meanwhile_is_left(path):
    def callback(progress):
        if progress.generation == 2:
            lock_of(path).unlink()
            lock_of(path).write_text("mine")

    search(path, callback=callback)
    assert lock_of(path).read_text() == "mine"


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1}', "[]", "\xff"], ids=repr)
def test_a_holder_that_has_not_said_its_name_yet_holds_it_all_the_same(path, tmp_path, text):
    with holder(path, tmp_path):
        lock_of(path).write_text(text, encoding="latin-1")
        with pytest.raises(ValueError, match="is in use by another process"):
            search(path)


def test_a_lock_that_could_not_be_written_is_not_held(path, monkeypatch):
    """A full disk at the very start."""

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("mixcma.store.lock.os.write", full)
        with pytest.raises(ValueError, match="cannot be written"):
            search(path)
    assert search(path).evaluations == 30


# Within one process


def test_two_searches_of_one_process_are_refused(path):
    refused = []

    def callback(progress):
        with pytest.raises(ValueError, match="is in use by another search of this process") as caught:
            search(path, method="mix-without-model")
        refused.append(caught)

    result = search(path, method="mix-without-model", callback=callback)
    assert len(refused) == 5
    assert result.evaluations == 30
    assert search(path, budget=40, method="mix-without-model").evaluations == 40


def test_two_searches_of_one_process_are_refused_by_whatever_name(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.db").symlink_to(path)
    refused = []

    def callback(progress):
        for name in ("run.db", "./run.db", "folder/../run.db", "link.db"):
            with pytest.raises(ValueError, match="is in use by another search of this process"):
                search(name)
            refused.append(name)

    search(path, budget=6, callback=callback)
    assert len(refused) == 4


def test_searches_in_threads_are_refused_but_for_one(path):
    answers, barrier = [], threading.Barrier(4)

    def one():
        barrier.wait()
        try:
            answers.append(search(path).evaluations)
        except ValueError as error:
            answers.append("is in use" in str(error) or str(error))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 30 in answers
    assert set(answers) <= {30, True}
    assert not lock_of(path).exists()


def test_of_threads_that_ask_at_the_same_moment_one_gets_the_lock(path, monkeypatch):
    """However slowly the file system answers."""
    answers, barrier, opened = [], threading.Barrier(3), os.open

    def slow(*arguments):
        time.sleep(0.05)
        return opened(*arguments)

    def one():
        barrier.wait()
        try:
            answers.append(Lock(path))
        except ValueError as error:
            answers.append("is in use" in str(error) or str(error))

    monkeypatch.setattr("mixcma.store.lock.os.open", slow)
    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    locks = [answer for answer in answers if isinstance(answer, Lock)]
    for lock in locks:
        lock.release()
    assert len(locks) == 1
    assert answers.count(True) == 2


def test_searches_on_different_files_do_not_disturb_each_other(path, tmp_path):
    inner = []

    def callback(progress):
        inner.append(search(tmp_path / f"{progress.generation}.db", method="mix-without-model").evaluations)

    search(path, method="mix-without-model", callback=callback)
    assert inner == [30] * 5


# Children


FORK = """
    def during():
        child = os.fork()
        if child == 0:
            os.close(1)
            signal.pause()
        print(child, flush=True)
"""


def test_a_forked_child_that_outlives_the_search_does_not_hold_the_lock(path, tmp_path):
    program = tmp_path / "forks.py"
    program.write_text(textwrap.dedent(HOLDER) + textwrap.dedent(FORK) + textwrap.dedent(SEARCH))
    command = [sys.executable, str(program), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        child = int(process.stdout.readline())
        try:
            assert process.stdout.readline() == "here\n"
            with pytest.raises(ValueError, match=f"process {process.pid} "):
                search(path)
            killed(process)
            os.kill(child, 0)  # it is still there
            assert search(path).evaluations == 30
        finally:
            os.kill(child, signal.SIGKILL)


def test_the_end_of_a_forked_child_does_not_free_the_lock(path, tmp_path):
    more = """
        def during():
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
    """
    with holder(path, tmp_path, more) as process, pytest.raises(ValueError, match=f"process {process.pid} "):
        search(path)


def test_a_worker_process_that_outlives_the_search_does_not_hold_the_lock(path, tmp_path):
    """Workers of a pool that forks, one of which hangs."""
    program = """
        import multiprocessing, os, signal, sys
        from concurrent.futures import ProcessPoolExecutor
        from mixcma import Float, Space, minimize
        def objective(p):
            print(os.getpid(), flush=True)
            signal.pause()
        if __name__ == "__main__":
            pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
            space = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
            minimize(objective, space, budget=30, seed=1, workers=pool, run_file=sys.argv[1])
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        try:
            killed(process)
            os.kill(worker, 0)
            assert search(path).evaluations == 30
        finally:
            os.kill(worker, signal.SIGKILL)
