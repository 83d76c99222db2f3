"""Neutron's WSGI application, its mappers made before the first request.

Neutron 29 with SQLAlchemy 2.1: a fresh process answers GET /v2.0/ports with HTTP 500 (type object
'Port' has no attribute 'port_forwardings') until another query has configured the mappers.
"""

from __future__ import annotations

from neutron.wsgi.api import application
from sqlalchemy import orm

orm.configure_mappers()

__all__ = ["application"]
