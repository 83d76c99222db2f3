"""Real servers for tests, on loopback, each checked to be ours and stopped whatever happens."""

from servers.child import Child, folder, free_port, missing
from servers.counting import CountingServer, counting_server
from servers.nginx_server import nginx_server
from servers.rabbitmq import RabbitmqServer, rabbitmq_server
from servers.redis_server import RedisServer, redis_executable, redis_server

__all__ = [
    "Child",
    "CountingServer",
    "RabbitmqServer",
    "RedisServer",
    "counting_server",
    "folder",
    "free_port",
    "missing",
    "nginx_server",
    "rabbitmq_server",
    "redis_executable",
    "redis_server",
]
