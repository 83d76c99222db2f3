"""What Rally's cleanup only logs is reported."""

from __future__ import annotations

import logging

import pytest

from osbench.common.errors import ContextError
from osbench.common.plugin.context import ContextEnvironment
from osbench.edges.rally.adapters import context_adapter as contexts
from osbench.edges.rally.context_object.cleanup_errors import CleanupErrors

BROKER = logging.getLogger("rally.common.broker")


class Refused(Exception):
    http_status = 409


class Gone(Exception):
    http_status = 404


def complain(error: Exception) -> None:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - as Rally does
        BROKER.warning("Failed to consume a task from the queue: %s", caught)


def test_what_is_already_removed_is_not_an_error() -> None:
    with CleanupErrors() as errors:
        complain(Refused("still in\nuse"))
        complain(Gone("not found"))
        BROKER.info("all is well")
        logging.getLogger("rally_openstack.task.cleanup.manager").warning(
            "timeout for nova.servers: 7"
        )
        logging.getLogger("elsewhere").warning("of no interest")

    assert errors.messages == [
        "Failed to consume a task from the queue: still in use",
        "timeout for nova.servers: 7",
    ]


def test_complaints_are_heard_where_rally_is_silenced_and_do_not_go_on_for_ever() -> None:
    BROKER.setLevel(logging.CRITICAL)
    try:
        with CleanupErrors() as errors:
            for number in range(25):
                complain(Refused(str(number)))
        BROKER.error("later")

        assert len(errors.messages) == 21
        assert errors.messages[-1] == "and 5 more"
        assert BROKER.level == logging.CRITICAL
        assert BROKER.handlers == []
    finally:
        BROKER.setLevel(logging.NOTSET)


def test_a_context_that_left_something_is_kept_to_be_tried_again() -> None:
    pytest.importorskip("rally", reason="the extra osbench[rally] is not installed")
    dummy = contexts.context_class("dummy_context@default")
    assert dummy is not None
    made: dict[str, object] = {}
    context = dummy({}, ContextEnvironment(run="r"), made)
    context.setup()

    class Careless(contexts.RallyContext):
        @staticmethod
        def RALLY(carried: object) -> type:
            class Rally:
                @staticmethod
                def get_fullname() -> str:
                    return "careless@default"

                @staticmethod
                def get_owner_id() -> str:
                    return "1f2e3d4c"

                @staticmethod
                def cleanup() -> None:
                    complain(Refused(f"{carried is not None}"))

            return Rally

    with pytest.raises(ContextError, match=r"left behind: Failed to consume .*: True"):
        Careless({}, ContextEnvironment(run="r"), made).cleanup()
    assert set(made) == {"rally"}
