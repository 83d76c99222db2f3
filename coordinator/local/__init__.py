"""Local mode: a private Redis and private workers for one run, removed with it."""

from osbench.coordinator.local.local_mode import LocalMode

__all__ = ["LocalMode"]
