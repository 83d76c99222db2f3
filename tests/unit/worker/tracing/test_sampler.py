import subprocess
import sys

import pytest

from osbench.worker.tracing.profiling import Tracer
from osbench.worker.tracing.sampler import mix, seed_of


def chosen(rate, seed, count=20_000):
    tracer = Tracer("key", "r1", rate, None, seed)
    return {number for number in range(1, count + 1) if tracer.sampled(number)}


def test_all_and_none():
    everything, nothing = chosen(1.0, 5), chosen(0.0, 5)

    assert len(everything) == 20_000
    assert nothing == set()


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_the_share_is_the_rate(rate):
    found = len(chosen(rate, seed_of("a run")))

    # five standard deviations of a binomial variable
    assert abs(found - 20_000 * rate) < 5 * (20_000 * rate * (1 - rate)) ** 0.5


def test_a_higher_rate_adds_iterations_and_takes_none_away():
    assert chosen(0.1, 5) < chosen(0.2, 5)


def test_runs_choose_differently():
    first, second = chosen(0.5, seed_of("run 1")), chosen(0.5, seed_of("run 2"))

    assert 9_000 < len(first ^ second) < 11_000


def test_every_process_chooses_alike():
    code = (
        "from osbench.worker.tracing.sampler import mix, seed_of;"
        "print(sum(mix(seed_of('a run'), n) for n in range(1000)))"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert int(said.stdout) == sum(mix(seed_of("a run"), number) for number in range(1000))


def test_the_mix_is_splitmix64():
    # the first outputs of the reference implementation for seed 1234567
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]

    assert [mix(1234567, number) for number in (1, 2, 3)] == known
