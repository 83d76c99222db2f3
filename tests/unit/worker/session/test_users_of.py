"""Plans of virtual users, as a worker makes them from a specification."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from helpers.import_path import TESTS, import_path

CODE = """
    import sys
    from helpers.preparing import specified
    from osbench.common.plugin.scenario import Scenario
    from osbench.worker.session.users_of import users_of

    class Shop(Scenario):
        async def look(self):
            await self.http.get("/items")

    class Sums(Scenario):
        async def look(self):
            sum(range(10))

    users_of(specified(0, "shop"), {scenario}, {{}}, is_coroutine=True)
    print("osbench.worker.http.user.http_session" in sys.modules)
"""


@pytest.mark.parametrize(("scenario", "early"), [("Shop", "True"), ("Sums", "False")])
def test_what_requests_need_is_imported_before_the_load_where_a_scenario_makes_some(
    scenario, early
):
    # a process of its own: tests have imported all
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CODE.format(scenario=scenario))],
        env=import_path(TESTS),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert done.stdout.strip() == early
