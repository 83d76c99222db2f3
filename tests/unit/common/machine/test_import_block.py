"""Imports without garbage collection."""

from __future__ import annotations

import gc
import importlib
import sys

import pytest

from osbench.common.machine.import_block import import_block


@pytest.fixture(autouse=True)
def _unfrozen():
    yield
    gc.unfreeze()


def test_nothing_is_collected_within_the_block() -> None:
    with import_block():
        assert not gc.isenabled()

    assert gc.isenabled()


def test_an_import_that_fails_leaves_the_collector_on() -> None:
    with pytest.raises(ModuleNotFoundError), import_block():
        importlib.import_module("osbench.there_is_none")

    assert gc.isenabled()


def test_objects_are_exempt_once_modules_were_imported(monkeypatch) -> None:
    gc.unfreeze()
    with import_block():
        pass
    assert gc.get_freeze_count() == 0

    with import_block():
        monkeypatch.setitem(sys.modules, "osbench_imported", sys)
    assert gc.get_freeze_count() > 0


def test_a_block_within_another_does_not_end_it() -> None:
    with import_block():
        with import_block():
            pass
        assert not gc.isenabled()
