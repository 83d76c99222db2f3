"""A workload waits for hook actions at its end, and says so."""

from types import SimpleNamespace

from osbench.coordinator.run import workload


def test_hook_actions_that_are_waited_for_are_named_once(monkeypatch, caplog):
    monkeypatch.setattr(workload, "HOOKS_SAID_S", 0.0)
    looks = iter([True, True, False])
    run = SimpleNamespace(
        hooks=SimpleNamespace(running=2),
        plan=SimpleNamespace(name="Boot"),
        services=SimpleNamespace(pool=SimpleNamespace(poll=lambda: None)),
    )

    workload.WorkloadRun._await_hooks(run, 60.0, lambda: next(looks))

    (said,) = caplog.messages
    assert said == (
        "Boot: the load is over; waiting up to 60 s for 2 hook actions that have not ended; "
        "Ctrl-C ends them"
    )
