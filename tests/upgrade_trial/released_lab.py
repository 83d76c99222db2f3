"""A lab whose Keystone and Glance are of one of two releases, with their data kept."""

from __future__ import annotations

from pathlib import Path

from services import environments, operations
from services.lab import Fault, Lab, Options
from services.service import run, run_several

#: Services that are upgraded, and the release before the one that the lab has.
BEFORE = {"keystone": "29.1.0", "glance": "32.0.0"}
#: The regression: every statement that reads users or images takes longer, by this.
_FAULTS = (
    Fault(service="keystone", text="FROM user", share=1.0, delay_s=0.02),
    Fault(service="glance", text="FROM images", share=1.0, delay_s=0.02),
)


class ReleasedLab(Lab):
    """The lab in a folder; `old` services have the pins of `BEFORE`."""

    @property
    def old(self) -> bool:
        """Whether its services are of the earlier release."""
        return self._releases.exists()

    def environment(self, name: str) -> Path:
        """The virtual environment of a service, of its present release."""
        if not self.old or name not in BEFORE:
            return super().environment(name)
        return environments.environment(name, _earlier_pins(self, name))

    def release(self, *, old: bool, slower: bool = False) -> None:
        """Have both services of a release run, restarted, and migrate their databases to it.

        `slower`: with the regression.
        """
        self.options = Options(faults=True)
        operations.stop(self, BEFORE)
        changed = old != self.old
        if old:
            self._releases.touch()
        else:
            self._releases.unlink(missing_ok=True)
        if changed:
            self._migrate()
        self.plant(*(_FAULTS if slower else ()))
        operations.start(self, BEFORE)

    @property
    def _releases(self) -> Path:
        return self.folder / "earlier-release"

    def _migrate(self) -> None:
        if not (self.home("glance") / ".initialised").exists():
            return
        python = self.environment("keystone") / "bin" / "python"
        conf = self.home("keystone") / "keystone.conf"
        run_several(python, "keystone.cmd.manage:main", conf, [["db_sync"]], env={})
        manage = self.environment("glance") / "bin" / "glance-manage"
        conf = self.home("glance") / "glance-api.conf"
        run([str(manage), "--config-file", str(conf), "db_sync"])


def _earlier_pins(lab: Lab, name: str) -> Path:
    """A file with the lab's pins, but the service's own of the earlier release."""
    pins = (environments.REQUIREMENTS / f"{name}.txt").read_text("utf-8").splitlines()
    found = [f"{name}=={BEFORE[name]}" if one.startswith(f"{name}==") else one for one in pins]
    path = lab.folder / f"{name}-{BEFORE[name]}.txt"
    path.write_text("\n".join(found) + "\n", "utf-8")
    return path
