"""Pools of processes for tests: not forked from the process of the tests, which has threads of other libraries."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor


def processes(count, **options):
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("forkserver"), **options)
