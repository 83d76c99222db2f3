"""Tokens and what they allow."""

from __future__ import annotations

import pytest

from osbench.common.errors import UsageError
from osbench.coordinator.front.web.access_tokens import READ_TOKEN, TOKEN, AccessTokens, Role

FULL, READ = "full-0123456789abcdef", "read-0123456789abcdef"


@pytest.fixture
def tokens() -> AccessTokens:
    return AccessTokens(token=FULL, read_token=READ)


def test_tokens_are_taken_from_the_environment_and_out_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TOKEN, FULL)
    monkeypatch.setenv(READ_TOKEN, READ)

    assert AccessTokens.from_environment() == AccessTokens(token=FULL, read_token=READ)
    # hooks and workers that are started later inherit the environment
    again = AccessTokens.from_environment()
    assert again.token not in (FULL, "")
    assert again.read_token == ""


def test_generated_tokens_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)

    found = {AccessTokens.from_environment().token for _ in range(3)}

    assert len(found) == 3
    assert all(len(token) >= 32 for token in found)


@pytest.mark.parametrize(
    "value", ["short", "with a blank 0123456", "ümlaut-0123456789abcdef", "a&b=0123456789abcdef"]
)
def test_tokens_that_are_weak_or_no_part_of_an_address_are_refused(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(TOKEN, value)

    with pytest.raises(UsageError, match=TOKEN) as error:
        AccessTokens.from_environment()
    assert value not in str(error.value)


def test_one_token_cannot_have_two_meanings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, FULL)
    monkeypatch.setenv(READ_TOKEN, FULL)

    with pytest.raises(UsageError, match="must be different"):
        AccessTokens.from_environment()


def test_each_token_has_its_role(tokens: AccessTokens) -> None:
    assert tokens.role_of(FULL) is Role.ABORT
    assert tokens.role_of(READ) is Role.READ
    for other in ("", "x", FULL + "x", FULL[:-1], "\udcff", "ü"):
        assert tokens.role_of(other) is None


def test_without_a_read_token_the_empty_one_reads_nothing() -> None:
    tokens = AccessTokens(token=FULL)

    assert tokens.role_of("") is None
    assert tokens.role_of_cookie(tokens.cookie(Role.READ)) is None


def test_cookies_stand_for_tokens_and_do_not_tell_them(tokens: AccessTokens) -> None:
    for role in Role:
        cookie = tokens.cookie(role)

        assert tokens.role_of_cookie(cookie) is role
        assert tokens.role_of(cookie) is None
        assert FULL not in cookie
        assert READ not in cookie
    assert tokens.role_of_cookie(FULL) is None


def test_the_key_of_aborts_is_not_the_cookie(tokens: AccessTokens) -> None:
    assert tokens.permits_abort(tokens.abort_key)
    assert not tokens.permits_abort(tokens.cookie(Role.ABORT))
    assert not tokens.permits_abort("")
