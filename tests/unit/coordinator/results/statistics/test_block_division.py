import numpy as np
import pytest

from osbench.coordinator.results.statistics.block_division import correlation, division_of


def test_a_run_is_divided_into_forty_blocks_and_twenty_or_as_many_as_it_has_bins():
    counts = np.ones((480, 3), np.int64)

    assert division_of(counts).blocks == 40
    assert len([*division_of(counts).variances(0.5)]) == 2
    assert division_of(counts[:20]).blocks == 20
    assert len([*division_of(counts[:20]).variances(0.5)]) == 1
    assert division_of(counts[:15]) is None


def test_deviations_are_those_of_the_percentile_and_sum_to_nothing():
    random = np.random.default_rng(1)
    counts = random.poisson(5, (100, 50)).astype(np.int64)

    found = division_of(counts).deviations(0.3)

    assert found.sum() == pytest.approx(0, abs=1e-6)
    assert found.std() > 1


def test_the_correlation_of_neighbours_is_corrected_for_few_blocks():
    random = np.random.default_rng(2)

    independent = [correlation(one - one.mean()) for one in random.normal(size=(400, 40))]
    processes = []
    for noise in random.normal(size=(400, 40)):
        level, levels = 0.0, []
        for one in noise:
            level = 0.5 * level + one
            levels.append(level)
        processes.append(correlation(np.array(levels) - np.mean(levels)))

    assert np.mean(independent) < 0.1
    # its own square is added
    assert np.median(processes) == pytest.approx(0.75, abs=0.1)
    assert correlation(np.zeros(40)) == 0


def test_dependence_takes_degrees_of_freedom_and_widens():
    random = np.random.default_rng(3)
    alike = np.repeat(random.permutation(10), 48)[:480]
    counts = np.stack([100 + 5 * alike, 150 - 5 * alike], axis=1).astype(np.int64)
    mixed = random.permutation(counts)

    (wide, few), _ = division_of(counts).variances(0.5)
    (narrow, many), _ = division_of(mixed).variances(0.5)

    assert wide > 10 * narrow
    assert few < 10
    assert many > 30
