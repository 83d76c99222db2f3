"""Bound of the size of an HTTP response, and the message on a larger one."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from oslo_config import cfg

from osbench.common.config.options import RESPONSE_LIMIT_MIB


@dataclass(frozen=True)
class ResponseBound:
    """The most bytes of a response that are kept, and the setting that says so, if there is one."""

    #: As they are sent, and decoded.
    most_bytes: int = RESPONSE_LIMIT_MIB << 20
    setting: str = ""

    def message(self, size: int = 0, *, decoded: bool = False) -> str:
        """Return the message on a response that is larger.

        `size` is how many bytes it has, as far as that is known: if `decoded`, as it was sent.
        """
        most = self.most_bytes
        allowed = f"{most:,} bytes" if most & 0xFFFFF else f"{most >> 20} MiB"
        who = f"{self.setting} allows" if self.setting else "are read"
        bound = f"more than the {allowed} that {who}"
        if decoded:
            return f"the response{f' of {size:,} bytes' if size else ''} decodes to {bound}"
        return f"the response has {f'{size:,} bytes, ' if size else ''}{bound}"


#: If no setting says otherwise.
USUAL = ResponseBound()
UNBOUNDED = ResponseBound(sys.maxsize)

#: Key of a worker's bound in the context of a workload.
BOUND_KEY = "response_bound"


def worker_bound(conf: cfg.ConfigOpts) -> ResponseBound:
    """Return the bound of responses to the requests of iterations."""
    return ResponseBound(conf.worker.response_limit_mib << 20, "[worker] response_limit_mib")
