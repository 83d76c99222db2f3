from helpers.synthetic_traces import Work, spans_of
from osbench.edges.traces.analysis.digest import digest_of
from osbench.edges.traces.analysis.ranking import mistral_table, ranked_from


def rows_of(*works):
    digest = digest_of(spans_of(work, number=n) for n, work in enumerate(works))
    return digest.ranking.rows()


def test_inclusive_own_and_critical_time():
    work = Work(name="engine-run", start=0, length=100).add(
        Work(name="task-run", start=10, length=40).add(Work(name="db", start=20, length=10)),
        Work(name="task-run", start=30, length=60),
    )

    engine, task, db = rows_of(work)

    assert (engine.name, engine.count, engine.traces) == ("engine-run", 1, 1)
    assert (engine.total_s, engine.self_s) == (0.1, 0.02)
    assert (task.total_s, task.max_s, task.mean_s, task.count) == (0.1, 0.06, 0.05, 2)
    assert (task.self_s, task.traces) == (0.09, 1)
    # of the first task only what lies before the second began could have been waited for
    assert (engine.critical_s, task.critical_s, db.critical_s) == (0.04, 0.06, 0.0)


def test_the_table_of_mistrals_guide():
    works = [Work(name="engine-on-action-complete", start=0, length=1_000_123.456)]
    works += [Work(name="task-run", start=0, length=length) for length in (1500.0, 2500.25)]

    table = mistral_table(rows_of(*works))

    assert table == (
        "Total time | Max time | Avg time | Occurrences | Trace name\n"
        + "-" * 91
        + "\n"
        + "1000.123     1000.123   1000.123   1             engine-on-action-complete\n"
        + "4.000        2.500      2.000      2             task-run\n"
    )


def test_the_same_name_in_two_services_is_two_trace_points_and_one_of_mistrals():
    work = Work(name="a", start=0, length=3000).add(
        Work(name="db", start=0, length=1000, service="nova/api"),
        Work(name="db", start=1000, length=500, service="glance/api"),
    )

    _, nova, glance = rows = rows_of(work)

    assert (nova.service, nova.total_s) == ("nova/api", 1.0)
    assert (glance.service, glance.total_s) == ("glance/api", 0.5)
    assert "1.500        1.000      0.750      2             db\n" in mistral_table(rows)


def test_spans_left_out_of_a_trace_are_not_ranked():
    lost = Work(name="gone", start=1, length=3, lost=True)
    root = Work(name="a", start=0, length=9)
    root.add(lost.add(Work(name="orphaned", start=2, length=1)))

    assert [row.name for row in rows_of(root)] == ["a"]


def test_spans_without_an_end_are_not_ranked():
    work = Work(name="a", start=0, length=10).add(Work(name="b", start=1, length=5, lost_stop=True))

    assert [row.name for row in rows_of(work)] == ["a"]


def test_rows_come_back_from_json():
    rows = rows_of(Work(name="a", start=0, length=10))

    assert ranked_from([vars(row) for row in rows]) == rows
