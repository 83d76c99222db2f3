"""Errors that contexts raise: a run shows the message alone, without a traceback.

- `ContextError`: a context cannot be set up or undone
- `DeploymentError`: the deployment under test lacks something
"""

from osbench.common.errors import ContextError, DeploymentError

__all__ = ["ContextError", "DeploymentError"]
