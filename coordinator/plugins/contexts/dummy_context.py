"""The context `dummy_context`, which makes nothing and fails on request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import context


class DummyContext(context.Context):
    """For tests: makes nothing, and fails to set up or to clean up on request."""

    NAME: ClassVar[str] = "dummy_context"
    ORDER: ClassVar[int] = 750
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"fail_setup": {"type": "boolean"}, "fail_cleanup": {"type": "boolean"}},
        "additionalProperties": False,
    }

    def setup(self) -> None:
        """Raise RuntimeError if `fail_setup` is true; else do nothing."""
        if self.config.get("fail_setup"):
            raise RuntimeError("fail_setup is true")

    def cleanup(self) -> None:
        """Raise RuntimeError if `fail_cleanup` is true; else do nothing."""
        if self.config.get("fail_cleanup"):
            raise RuntimeError("fail_cleanup is true")
