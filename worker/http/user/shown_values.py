"""Values of an answer in messages: short, however large they are, and with secrets masked."""

from __future__ import annotations

import reprlib
from itertools import islice
from typing import Any

from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.secret_names import MASK, is_secret

#: Characters of a text that are looked at.
_LOOKED_AT = 1000


class _ShownValue(reprlib.Repr):
    """`repr` of JSON values; what is left out is "..."."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = 6
        self.maxstring = self.maxother = 200

    def repr_dict(self, value: dict[Any, Any], level: int) -> str:
        # one more than is shown, so that it is told that there are others
        first = islice(value.items(), self.maxdict + 1)
        masked = {name: MASK if v and is_secret(str(name), v) else v for name, v in first}
        return super().repr_dict(masked, level)

    def repr_str(self, text: str, level: int) -> str:
        return super().repr_str(mask_text(text[:_LOOKED_AT]), level)


_SHOWN = _ShownValue()


def shown(value: Any) -> str:
    """A value for a message."""
    return _SHOWN.repr(value)
