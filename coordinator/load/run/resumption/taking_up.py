"""Takes up a run from its directory, for a coordinator that begins or resumes it."""

from __future__ import annotations

from osbench.coordinator.load.run import disturbances
from osbench.coordinator.load.run.plan import RunPlan
from osbench.coordinator.load.run.resumption.earlier_run import EarlierRun
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.workload.planned_results import planned_results


def take_up(plan: RunPlan, services: RunServices) -> EarlierRun:
    """Restore the state of earlier coordinators from disk, and journal that this one has the run.

    Returns the state before this coordinator; empty for a new run. Raises DamagedRun, StorageError,
    StoreUnreachable, StoreError.
    """
    accounts = services.accounts
    for one in plan.workloads:
        accounts.register(one.number, planned_results(one, plan))
    accounts.fold(services.directory, services.history.apply)
    earlier = EarlierRun(services.directory, accounts)
    disturbances.restore(services, earlier.notes)
    services.channel.tend()
    services.port.decide([{"do": "open", "run": plan.run_id, "epoch": accounts.epoch + 1}])
    services.key_notes.look()
    services.pool.epoch = services.controls.epoch = accounts.epoch
    for membership in accounts.memberships.values():
        services.pool.restore(membership)
    return earlier
