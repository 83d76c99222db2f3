import csv
import io

from osbench.common.outcomes import Outcome
from osbench.common.protocol.blocks import Failure, decode_rows, encode_rows
from osbench.coordinator.report.iterations_csv import CsvRows

TRACE = bytes(range(16))


def block(*rows):
    return decode_rows(encode_rows(rows, (), 1_000))


def test_each_iteration_is_a_line():
    file = io.StringIO()
    failure = Failure(number=3, etype="Boom", message='no "route", sorry', traceback="")
    rows = CsvRows(file)

    rows.write(
        0,
        "w1",
        block(
            (1, Outcome.OK, 1_000, 2_000, 5_000_002_000, 1_000, 0, (), (TRACE, None)),
            (2, Outcome.FAILED, 500, 1_000, 2_000, 0, 3, (), None),
            (3, Outcome.DROPPED_LATE, 9_000, 0, 0, 0, 0, (), None),
        ),
        [failure],
    )

    assert list(csv.DictReader(io.StringIO(file.getvalue()))) == [
        {
            "workload": "0",
            "iteration": "1",
            "outcome": "ok",
            "due_s": "0.000000000",
            "started_s": "0.000001000",
            "service_s": "4.999999000",
            "response_s": "5.000001000",
            "start_lag_s": "0.000001000",
            "error": "",
            "trace_id": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        },
        {
            "workload": "0",
            "iteration": "2",
            "outcome": "failed",
            "due_s": "-0.000000500",
            "started_s": "0.000000000",
            "service_s": "0.000001000",
            "response_s": "0.000001500",
            "start_lag_s": "0.000000500",
            "error": 'Boom: no "route", sorry',
            "trace_id": "",
        },
        {
            "workload": "0",
            "iteration": "3",
            "outcome": "dropped_late",
            "due_s": "0.000008000",
            "started_s": "",
            "service_s": "",
            "response_s": "",
            "start_lag_s": "",
            "error": "",
            "trace_id": "",
        },
    ]


def test_an_iteration_reported_twice_is_written_once():
    file = io.StringIO()
    rows = CsvRows(file)

    rows.write(0, "w1", block((1, Outcome.OK, 0, 0, 9, 0, 0, (), None)))
    rows.write(
        0,
        "w2",
        block(
            (1, Outcome.FAILED, 0, 0, 9, 0, 0, (), None), (2, Outcome.OK, 0, 0, 9, 0, 0, (), None)
        ),
    )
    rows.write(1, "w2", block((1, Outcome.FAILED, 0, 0, 9, 0, 0, (), None)))

    lines = list(csv.DictReader(io.StringIO(file.getvalue())))
    found = [(line["workload"], line["iteration"], line["outcome"]) for line in lines]
    assert found == [("0", "1", "ok"), ("0", "2", "ok"), ("1", "1", "failed")]


def test_a_failure_is_described_once_and_known_afterwards():
    file = io.StringIO()
    rows = CsvRows(file)
    failure = Failure(number=1, etype="Boom", message="no", traceback="")

    rows.write(0, "w1", block((1, Outcome.FAILED, 0, 0, 9, 0, 1, (), None)), [failure])
    rows.write(0, "w1", block((2, Outcome.FAILED, 0, 0, 9, 0, 1, (), None)))
    rows.write(0, "w2", block((3, Outcome.FAILED, 0, 0, 9, 0, 1, (), None)))

    lines = csv.DictReader(io.StringIO(file.getvalue()))
    assert [line["error"] for line in lines] == ["Boom: no", "Boom: no", ""]
