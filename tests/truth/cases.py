"""The table of cases."""

from __future__ import annotations

from truth import counts, endings, latencies, limits, wire
from truth.case import Case

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        latencies.overload(),
        latencies.stall_open(),
        latencies.stall_closed(),
        latencies.trend(),
        latencies.outlier(),
        latencies.slow_start(),
        limits.max_concurrency(),
        limits.threads_full(),
        limits.shared_lock(),
        limits.kept_lock(),
        limits.stopped(),
        limits.worker_lost(),
        limits.blocked_loop(),
        limits.open_files(),
        limits.other_programs(),
        counts.throughput(),
        counts.one_iteration(),
        counts.ramp(),
        counts.long_warm_up(),
        counts.refused_warm_up(),
        wire.post_cut_off(),
        wire.gzip_read(),
        wire.gzip_not_read(),
        endings.context_fails(),
        endings.interrupted(),
        endings.warm_up_fails(),
        endings.hook_fails(),
        endings.export_fails(),
        endings.report_refused(),
        endings.directory_removed(),
    )
}
