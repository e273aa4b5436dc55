"""Objectives that change the process they run in: its settings, streams and threads."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from typing import NoReturn

from cases import AGAIN, EITHER, FAILED, MAY_DIE, PROCESS, VALUE, Params
from raising import raises_unshowable
from registry import FOREVER, LIE, attack, honest, leave


@attack(VALUE, lasts=True)
def empties_params(p: Params) -> float:
    """Empties the dict that it was given."""
    value = honest(p)
    p.clear()
    return value


@attack(VALUE, lasts=True)
def changes_params_later(p: Params) -> float:
    """Leaves a thread behind that changes the dict that it was given."""
    value = honest(p)
    threading.Timer(0.02, p.update, [{"x": LIE, "n": 1}]).start()
    return value


@attack(VALUE, lasts=True, needs=PROCESS)
def changes_folder(p: Params) -> float:
    """Changes to a folder and removes it."""
    import tempfile

    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    return honest(p)


@attack(VALUE, lasts=True)
def changes_to_root(p: Params) -> float:
    """Changes the current folder to /."""
    os.chdir("/")
    return honest(p)


@attack(VALUE, lasts=True)
def changes_umask(p: Params) -> float:
    """Sets a umask with which nobody may read new files."""
    os.umask(0o777)
    return honest(p)


@attack(VALUE, lasts=True)
def empties_environment(p: Params) -> float:
    """Removes every environment variable."""
    os.environ.clear()
    return honest(p)


@attack(VALUE, lasts=True, needs=PROCESS)
def empties_module_path(p: Params) -> float:
    """Empties sys.path."""
    sys.path.clear()
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def empties_modules(p: Params) -> float:
    """Empties sys.modules."""
    sys.modules.clear()
    return honest(p)


@attack(VALUE, lasts=True)
def sets_locale(p: Params) -> float:
    """Changes the locale."""
    import locale

    for name in ("de_DE.UTF-8", "C"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)
            break
    return honest(p)


@attack(VALUE, lasts=True)
def sets_seeds(p: Params) -> float:
    """Seeds the generators of random and NumPy."""
    import random

    import numpy as np

    random.seed(0)
    np.random.seed(0)
    return honest(p)


@attack(VALUE, lasts=True)
def sets_numpy_errors(p: Params) -> float:
    """Makes NumPy raise at every overflow and underflow."""
    import numpy as np

    np.seterr(all="raise")
    return honest(p)


@attack(VALUE, lasts=True)
def sets_warnings_to_errors(p: Params) -> float:
    """Makes every warning an exception."""
    import warnings

    warnings.simplefilter("error")
    return honest(p)


@attack(VALUE, lasts=True)
def silences_logging(p: Params) -> float:
    """Disables logging, and sets a last resort that raises."""
    import logging

    logging.disable(logging.CRITICAL)
    logging.raiseExceptions = True
    logging.lastResort = None
    return honest(p)


@attack(VALUE, lasts=True)
def freezes_collector(p: Params) -> float:
    """Freezes and disables the garbage collector."""
    import gc

    gc.freeze()
    gc.disable()
    return honest(p)


@attack(VALUE, lasts=True, needs=PROCESS)
def ignores_signals(p: Params) -> float:
    """Ignores every signal that can be ignored."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    return honest(p)


@attack(VALUE, lasts=True, needs=PROCESS)
def blocks_signals(p: Params) -> float:
    """Blocks every signal that can be blocked."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    return honest(p)


@attack(MAY_DIE, lasts=True, needs=PROCESS)
def sets_alarm(p: Params) -> float:
    """Sets an alarm that kills its process a moment later."""
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def sets_raising_alarm(p: Params) -> float:
    """Sets an alarm whose handler raises, again and again, wherever the process is by then."""

    def handler(number: int, frame: object) -> NoReturn:
        raise TimeoutError("alarm")

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def lowers_recursion_limit(p: Params) -> float:
    """Lowers the recursion limit as far as Python allows."""
    for limit in itertools.count(5):
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(limit)
            break
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def lowers_open_files(p: Params) -> float:
    """Allows itself no further open file."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def lowers_memory(p: Params) -> float:
    """Allows itself no further memory."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2**20, 2**20))
    return honest(p)


@attack(AGAIN, lasts=True, needs=PROCESS)
def exceeds_processor_time(p: Params) -> float:
    """Allows itself no processor time, and uses some."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        pass
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def breaks_clock(p: Params) -> float:
    """Replaces the functions of the module time by some that return text."""
    time.time = time.perf_counter = time.monotonic = lambda: "late"  # type: ignore[assignment,return-value]
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def breaks_pickle(p: Params) -> float:
    """Replaces pickle.dumps and loads by functions that lie."""
    import pickle

    lie = pickle.dumps(LIE)
    pickle.dumps = lambda *a, **k: lie  # type: ignore[assignment]
    pickle.loads = lambda *a, **k: LIE  # type: ignore[assignment]
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def breaks_json(p: Params) -> float:
    """Replaces json.dumps and loads by functions that return nothing."""
    import json

    json.dumps = json.loads = lambda *a, **k: None  # type: ignore[assignment]
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def breaks_writing(p: Params) -> float:
    """Replaces os.write by a function that claims to have written nothing."""
    os.write = lambda *a: 0
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS, spoils=True)
def traces_everything(p: Params) -> float:
    """Sets a trace function that raises at every call."""

    def trace(*arguments: object) -> NoReturn:
        raise RuntimeError("traced")

    sys.settrace(trace)
    threading.settrace(trace)
    return honest(p)


# Streams and file descriptors


@attack(VALUE, lasts=True)
def closes_stdout(p: Params) -> float:
    """Closes sys.stdout and sys.stderr."""
    sys.stdout.close()
    sys.stderr.close()
    return honest(p)


@attack(VALUE, lasts=True)
def drops_stdout(p: Params) -> float:
    """Sets sys.stdout and sys.stderr to None."""
    sys.stdout = sys.stderr = None  # type: ignore[assignment]
    return honest(p)


class Jammed:
    """A stream that calls for the end of the program whatever is done with it."""

    write = flush = close = fileno = isatty = leave


@attack(VALUE, lasts=True, needs=PROCESS)
def jams_stdout(p: Params) -> float:
    """Replaces sys.stdout and sys.stderr by objects that call for the end of the program."""
    sys.stdout = sys.stderr = Jammed()  # type: ignore[assignment]
    return honest(p)


@attack(VALUE, lasts=True, needs=PROCESS)
def closes_standard_descriptors(p: Params) -> float:
    """Closes the file descriptors 0, 1 and 2."""
    os.closerange(0, 3)
    return honest(p)


@attack(AGAIN, lasts=True, needs=PROCESS)
def closes_all_descriptors(p: Params) -> float:
    """Closes every file descriptor from 3 on, the line to its owner among them."""
    os.closerange(3, 1024)
    return honest(p)


@attack(AGAIN, lasts=True, needs=PROCESS)
def replaces_all_descriptors(p: Params) -> float:
    """Puts /dev/null in the place of every file descriptor from 3 on."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3, 64):
        os.dup2(null, number)
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS)
def writes_to_all_descriptors(p: Params) -> float:
    """Writes text to every file descriptor that it finds open."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            os.set_blocking(int(name), False)
            os.write(int(name), b"iteration 17 of 100\n")
    return honest(p)


@attack(EITHER, lasts=True, needs=PROCESS)
def reads_from_all_descriptors(p: Params) -> float:
    """Reads from every file descriptor that it finds open."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            os.set_blocking(int(name), False)
            os.read(int(name), 10**6)
    return honest(p)


@attack(VALUE, lasts=True)
def writes_megabytes(p: Params) -> float:
    """Writes 5 MB each to stdout and stderr, past Python's buffers too."""
    for stream in (sys.stdout, sys.stderr):
        stream.write("x" * 5_000_000)
    os.write(1, b"y" * 5_000_000)
    os.write(2, b"y" * 5_000_000)
    return honest(p)


@attack(FAILED, lasts=True, needs=PROCESS)
def asks_for_input(p: Params) -> str:
    """Asks for a number on stdin."""
    return input("value? ")


@attack(VALUE, lasts=True, needs=PROCESS)
def removes_temporary_files(p: Params) -> float:
    """Removes the folder for temporary files, which it first made its own."""
    import shutil
    import tempfile

    tempfile.tempdir = tempfile.mkdtemp(dir="/tmp")
    shutil.rmtree(tempfile.tempdir)
    return honest(p)


# Threads


@attack(VALUE, lasts=True)
def leaves_raising_thread(p: Params) -> float:
    """Leaves a thread behind that raises."""
    threading.Timer(0.01, raises_unshowable, [p]).start()
    return honest(p)


@attack(VALUE, lasts=True, needs=PROCESS)
def leaves_writing_thread(p: Params) -> float:
    """Leaves a thread behind that writes to stdout for ever."""

    def write() -> None:
        while True:
            sys.stdout.write("still here\n")
            time.sleep(0.001)

    threading.Thread(target=write, daemon=True).start()
    return honest(p)


@attack(VALUE, lasts=True, needs=PROCESS)
def leaves_waiting_thread(p: Params) -> float:
    """Leaves a thread behind that is no daemon and never ends."""
    threading.Thread(target=time.sleep, args=(FOREVER,)).start()
    return honest(p)


@attack(MAY_DIE, lasts=True, needs=PROCESS)
def leaves_exiting_thread(p: Params) -> float:
    """Leaves a thread behind that ends the process with status 0."""
    threading.Timer(0.01, os._exit, [0]).start()
    return honest(p)


@attack(VALUE, lasts=True, needs=PROCESS)
def leaves_hanging_exit(p: Params) -> float:
    """Registers a function that hangs when Python ends."""
    import atexit

    atexit.register(time.sleep, FOREVER)
    return honest(p)


@attack(MAY_DIE, lasts=True, needs=PROCESS)
def sets_fault_handler(p: Params) -> float:
    """Lets faulthandler end the process a moment later."""
    import faulthandler

    faulthandler.dump_traceback_later(0.05, exit=True, file=os.open(os.devnull, os.O_WRONLY))
    return honest(p)
