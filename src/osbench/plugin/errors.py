"""Errors that plug-ins raise: the message alone is shown, without a traceback.

- `ContextError`: a context cannot be set up or undone
- `DeploymentError`: the deployment under test lacks something
- `ExportError`: an exporter cannot write results, or a server does not take them
"""

from osbench.common.errors import ContextError, DeploymentError, ExportError

__all__ = ["ContextError", "DeploymentError", "ExportError"]
