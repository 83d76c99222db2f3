"""The exit code of a run is the first that applies, whatever else has happened."""

from __future__ import annotations

from osbench.common.plugin.sla import Verdict
from osbench.coordinator.report.exit_code import exit_code, meaning
from osbench.coordinator.results.accounting.totals import Accounting

#: Each cause, first to last, with its code.
CAUSES = [
    ({"refused": True}, 2),
    ({"interrupted": True}, 130),
    ({"broken": True}, 3),
    ({"aborted": True}, 1),
    ({"limited": True}, 4),
    ({"around": True}, 5),
]
NONE = {name: False for cause, _ in CAUSES for name in cause}


def code(*verdicts: Verdict, **causes: bool) -> int:
    accountings = [Accounting(planned=1, ok=1)]
    return exit_code(**{**NONE, **causes}, accountings=accountings, verdicts=verdicts)


def test_the_first_cause_that_applies_counts():
    for at, (cause, wanted) in enumerate(CAUSES):
        later = {name: True for other, _ in CAUSES[at + 1 :] for name in other}
        assert (code(**cause), code(**cause, **later)) == (wanted, wanted)
    assert code() == 0


def test_a_criterion_that_the_generator_may_have_failed_is_no_failure_and_no_success():
    kept = Verdict(criterion="percentile", success=True, detail="")
    failed = Verdict(criterion="failure_rate", success=False, detail="9 %")
    disputed = Verdict(criterion="percentile", success=False, detail="p90", disputed=True)

    assert code(kept) == 0
    assert code(kept, disputed) == code(disputed, limited=True) == 4
    assert code(disputed, aborted=True) == 4
    # nine that failed by exceptions are not hidden behind a late thread
    assert code(failed, limited=True) == code(failed, disputed) == 1


def test_dropped_arrivals_are_in_the_words_of_a_run_that_is_well():
    assert meaning(0) == "everything ran and every SLA holds"
    assert meaning(0, dropped=1560) == "every SLA holds, but 1,560 arrivals did not run: dropped"
    assert meaning(1, dropped=1560) == meaning(1)
