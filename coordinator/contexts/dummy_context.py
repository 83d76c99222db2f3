"""The `dummy_context`: makes nothing, and fails where it is told to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.common.plugin.context import Context


class DummyContext(Context):
    """For trying out what happens: makes nothing, fails to set up or to clean up when asked to."""

    NAME: ClassVar[str] = "dummy_context"
    ORDER: ClassVar[int] = 750
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"fail_setup": {"type": "boolean"}, "fail_cleanup": {"type": "boolean"}},
        "additionalProperties": False,
    }

    def setup(self) -> None:
        """Raise RuntimeError where `fail_setup` is true."""
        if self.config.get("fail_setup"):
            raise RuntimeError("fail_setup is true")

    def cleanup(self) -> None:
        """Raise RuntimeError where `fail_cleanup` is true."""
        if self.config.get("fail_cleanup"):
            raise RuntimeError("fail_cleanup is true")
