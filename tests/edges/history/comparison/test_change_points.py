import numpy as np
import pytest

from osbench.edges.history.comparison.change_points import change_points


def test_a_step_is_found_where_it_is():
    random = np.random.default_rng(1)
    series = np.concatenate((random.normal(10, 0.2, 15), random.normal(10.5, 0.2, 15)))

    (found,) = change_points(series, 0.003)

    assert found.at == 15
    assert found.before == pytest.approx(series[:15].mean())
    assert found.after == pytest.approx(series[15:].mean())
    assert found.p < 0.003


def test_two_steps_are_found():
    random = np.random.default_rng(2)
    levels = np.repeat([10.0, 11.0, 10.2], 15)

    found = change_points(levels + random.normal(0, 0.2, 45), 0.003)

    assert [one.at for one in found] == [15, 30]
    assert found[1].before == pytest.approx(11, abs=0.2)
    assert found[1].after == pytest.approx(10.2, abs=0.2)


def test_equal_runs_have_no_change():
    random = np.random.default_rng(3)

    assert not any(change_points(random.normal(10, 0.2, 30), 0.003) for _ in range(60))


def test_a_single_outlier_is_no_change():
    random = np.random.default_rng(4)
    series = random.normal(10, 0.2, 30)
    series[12] = 40

    assert change_points(series, 0.003) == ()


def test_few_numbers_and_equal_numbers_have_no_change():
    assert change_points([1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0], 0.05) == ()
    assert change_points([1.0] * 20, 0.05) == ()


def test_the_answer_does_not_depend_on_chance():
    series = np.random.default_rng(5).normal(10, 0.3, 30) + np.repeat([0, 0.4], 15)

    assert change_points(series, 0.01) == change_points(series, 0.01)
