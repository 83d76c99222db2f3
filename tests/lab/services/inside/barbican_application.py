"""Barbican's WSGI application, from the pipeline in the file that LAB_PASTE names.

Barbican's own module looks for the pipeline in /etc/barbican only.
"""

from __future__ import annotations

import os

from paste import deploy

application = deploy.loadapp(f"config:{os.environ['LAB_PASTE']}")
