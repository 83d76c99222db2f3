"""Durability of files, by the names of `os`.

- `fsync`, `fdatasync`: earlier writes are on disk when they return. If they raise OSError, any part
  of these writes may be there. Data that was not synced may be lost or torn in a crash.

Files themselves are opened and written as usual.
"""

from __future__ import annotations

from os import fdatasync, fsync

__all__ = ["fdatasync", "fsync"]
