"""The frames of all threads are read while no garbage is collected."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest

from osbench.common.machine.thread_frames import current_frames
from servers.child import PATIENCE_S


@pytest.fixture
def moments(monkeypatch):
    """Begin and end of each read of frames, and collections: one at each allocation if allowed."""
    told = []
    read = sys._current_frames  # noqa: TID251

    def read_frames():
        told.append("begin")
        frames = read()
        told.append("end")
        return frames

    def note(phase, info):
        told.append("collected")

    monkeypatch.setattr("sys._current_frames", read_frames)
    thresholds = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    yield told
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(note)


def test_no_garbage_is_collected_while_frames_are_read(moments):
    over = threading.Event()
    threads = [threading.Thread(target=over.wait, args=(PATIENCE_S,)) for _ in range(20)]
    for thread in threads:
        thread.start()

    frames = current_frames()
    # the collector is at work again
    [[] for _ in range(100)]
    over.set()

    begin = moments.index("begin")
    assert moments[begin + 1] == "end"
    assert "collected" in moments[:begin]
    assert "collected" in moments[begin:]
    assert {thread.ident for thread in threads} <= set(frames)
    for thread in threads:
        thread.join()


def test_the_collector_is_as_it_was_afterwards():
    current_frames()
    assert gc.isenabled()

    gc.disable()
    try:
        current_frames()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_forked_child_reads_frames_and_collects_garbage():
    over = threading.Event()

    def read():
        while not over.is_set():
            current_frames()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if current_frames() and gc.isenabled() else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        over.set()
        reader.join()
