"""OSProfiler's default key, which is public."""

from __future__ import annotations

DEFAULT_KEY = "SECRET_KEY"
DEFAULT_KEY_WARNING = (
    f"{DEFAULT_KEY} is OSProfiler's default key: anyone can make services with it trace; set "
    "another in [profiler] hmac_keys of the services, and in the record"
)
