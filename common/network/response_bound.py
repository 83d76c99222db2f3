"""The size limit of an HTTP response, and the message on a larger one."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from oslo_config import cfg

from osbench.common.config.options import RESPONSE_LIMIT_MIB


@dataclass(frozen=True)
class ResponseBound:
    """The size limit of a response, and in `setting` the option that sets it, or ""."""

    #: As they are sent, and decoded.
    most_bytes: int = RESPONSE_LIMIT_MIB << 20
    setting: str = ""

    def message(self, size: int = 0, *, decoded: bool = False) -> str:
        """Return the error message on a response over the limit, naming the option that sets it.

        `size`: its announced bytes, 0 if unknown. `decoded`: it exceeds the limit only once
        decoded.
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
    """Return the size limit of responses to iterations, from [worker] response_limit_mib."""
    return ResponseBound(conf.worker.response_limit_mib << 20, "[worker] response_limit_mib")
