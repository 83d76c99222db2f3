"""RabbitMQ, over which the parts of Mistral, Nova and Neutron talk."""

from __future__ import annotations

from servers import RabbitmqServer
from servers.rabbitmq import RABBITMQ
from services.faults import Unavailable
from services.lab import Lab
from services.process import Process
from services.service import Service


def server(lab: Lab) -> RabbitmqServer:
    """The lab's broker; its node has the lab's port in its name."""
    port, node_port, mapper_port = (lab.port(name) for name in Rabbitmq.ports)
    return RabbitmqServer(
        lab.home("rabbitmq"),
        node=f"lab-{port}@localhost",
        ports=(port, node_port, mapper_port),
    )


def transport_url(lab: Lab) -> str:
    """The broker as oslo.messaging names it."""
    return f"rabbit://guest:guest@127.0.0.1:{lab.port('rabbitmq')}/"


class Rabbitmq(Service):
    """The broker and its port mapper, both on loopback only."""

    name = "rabbitmq"
    ports = ("rabbitmq", "rabbitmq-node", "rabbitmq-mapper")

    def check(self) -> None:
        if not RABBITMQ.exists():
            raise Unavailable("RabbitMQ is not installed (Debian package rabbitmq-server)")

    def processes(self, lab: Lab) -> list[Process]:
        broker = server(lab)
        broker.write_config()
        env = broker.environment()
        return [
            Process(
                name="rabbitmq-mapper",
                command=broker.epmd_command(),
                env=env,
                port=broker.epmd_port,
                ready=broker.epmd_answers,
            ),
            Process(
                name="rabbitmq",
                command=broker.command(),
                env=env,
                port=broker.port,
                ready=broker.is_ours,
            ),
        ]

    def url(self, lab: Lab) -> str:
        return f"amqp://127.0.0.1:{lab.port('rabbitmq')}"
