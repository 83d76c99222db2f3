"""The exit code of a run is the first that applies, whatever else has happened."""

from __future__ import annotations

from osbench.coordinator.report.exit_code import exit_code, meaning
from osbench.coordinator.results.totals import Accounting

#: Each cause, first to last, with its code.
CAUSES = [
    ({"refused": True}, 2),
    ({"interrupted": True}, 130),
    ({"broken": True}, 3),
    ({"limited": True}, 4),
    ({"aborted": True}, 1),
    ({"around": True}, 5),
]
NONE = {name: False for cause, _ in CAUSES for name in cause}


def code(**causes: bool) -> int:
    return exit_code(**{**NONE, **causes}, accountings=[Accounting(planned=1, ok=1)], verdicts=[])


def test_the_first_cause_that_applies_counts():
    for at, (cause, wanted) in enumerate(CAUSES):
        later = {name: True for other, _ in CAUSES[at + 1 :] for name in other}
        assert (code(**cause), code(**cause, **later)) == (wanted, wanted)
    assert code() == 0


def test_dropped_arrivals_are_in_the_words_of_a_run_that_is_well():
    assert meaning(0) == "everything ran and every SLA holds"
    assert meaning(0, dropped=1560) == "every SLA holds, but 1,560 arrivals did not run: dropped"
    assert meaning(1, dropped=1560) == meaning(1)
