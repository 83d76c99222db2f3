"""Chart data may hold the values that a scenario computes with."""

from collections import UserDict, deque
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from types import SimpleNamespace
from unittest.mock import MagicMock

import msgpack
import numpy as np
import pytest

from osbench.common.plugin.output_values import pack_output


class Size(Enum):
    SMALL = np.int64(3)


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (np.float32(0.5), 0.5),
        (np.arange(3), [0, 1, 2]),
        (np.datetime64("2026-01-02"), "2026-01-02"),
        (Size.SMALL, 3),
        (Level.LOW, 1),
        (Decimal("1.5"), 1.5),
        (2**64, "18446744073709551616"),
        (deque([1, Decimal(2)]), [1, 2.0]),
        ({7}, [7]),
        (UserDict(a=np.bool_(True)), {"a": True}),
        (date(2026, 1, 2), "2026-01-02"),
        # a series of pandas
        (SimpleNamespace(to_numpy=lambda: np.array([1.5])), [1.5]),
    ],
)
def test_values_become_numbers_strings_and_lists(value, stored):
    packed = pack_output("additive", {"title": "t", "data": [["a", value]]})

    item = {"title": "t", "data": [["a", stored]]}
    assert msgpack.unpackb(packed) == {"kind": "additive", "item": item}


def test_an_object_that_answers_everything_becomes_its_text():
    packed = pack_output("complete", {"data": MagicMock(name="server")})

    assert "MagicMock" in msgpack.unpackb(packed)["item"]["data"]


def test_data_that_holds_itself_is_refused():
    data = []
    data.append(data)

    with pytest.raises(TypeError, match="additive output cannot be stored"):
        pack_output("additive", {"data": data})
