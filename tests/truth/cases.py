"""The table of cases."""

from __future__ import annotations

from truth import counts, endings, instants, latencies, limits, verdicts, wire
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
        verdicts.search_beside_stops(),
        verdicts.users_at_once(),
        verdicts.more_requests(),
        verdicts.blocks_break_limit(),
        verdicts.blocks_break_response(),
        verdicts.slow_breaks_limit(),
        verdicts.both_break_limit(),
        verdicts.failures_beside_blocks(),
        verdicts.short_loads(),
        verdicts.slow_drill(),
        instants.rate_of_users(),
        instants.replay(),
        counts.throughput(),
        counts.one_iteration(),
        counts.ramp(),
        counts.long_warm_up(),
        counts.refused_warm_up(),
        wire.post_cut_off(),
        wire.gzip_read(),
        wire.gzip_not_read(),
        wire.endless_answers(),
        endings.context_fails(),
        endings.interrupted(),
        endings.interrupted_twice(),
        endings.warm_up_fails(),
        endings.hook_fails(),
        endings.export_fails(),
        endings.report_refused(),
        endings.directory_removed(),
    )
}
