"""Rally's sample tasks, where they are next to the repository."""

import re
from pathlib import Path

import pytest

#: Folder of the samples: rally/, rally-openstack/ and deployments/.
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"

#: The problem of a task whose file for Mistral, Heat or servers is not next to the samples.
ABSENT = re.compile(
    r"^argument (definition|params|wf_input|files|template_path|updated_template_path|command): "
    r"cannot read (rally-jobs/extra|samples/tasks)/\S+: No such file"
)


def corpus() -> Path:
    """The folder of the samples; skips the test where it is absent."""
    if not CORPUS.is_dir():
        pytest.skip(f"Rally's sample tasks are not at {CORPUS}")
    return CORPUS


def task_files() -> list[Path]:
    """All task files among the samples; skips the test where they are absent."""
    files = [
        path
        for project in ("rally", "rally-openstack")
        for path in sorted((corpus() / project).rglob("*"))
        if path.suffix in (".json", ".yaml")
    ]
    assert files
    return files
