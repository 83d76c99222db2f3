"""Which names are those of secrets, and where."""

from __future__ import annotations

import pytest

from osbench.common.secrets.secret_names import Place, is_secret, names_beside, secret_segments

#: `password` in the full-width letters of East Asian input methods.
FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "password")

ANYWHERE = [
    *("Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Auth-Token", "DPoP"),
    *("X-Subject-Token", "X-Service-Token", "X-Storage-Token", "X-Api-Key", "X-CSRF-Token"),
    *("X-Vault-Token", "X-Amz-Security-Token", "X-Amz-Signature", "X-Hub-Signature-256"),
    *("X-Account-Meta-Temp-URL-Key", "Ocp-Apim-Subscription-Key", "X-Xsrf", "x_auth_token"),
    *("temp_url_sig", "access_token", "client_secret", "api_key", "apiKey", "APIKey", "apikey"),
    *("password", "Passwort", "pass_phrase", "passcode", "adminPass", "admin_pass", "adminpass"),
    *("userpwd", "new_password_again", "password2", "OS_PASSWORD", "secret", "secret_id", "otp"),
    *("totp", "credential", "credentials", "refreshToken", "id_token_hint", "private_key"),
    *("privateKeyPem", "private_key_1", "ssh_key", "user_data", "userData", "cardNumber", "cvv"),
    *("jwt", "SAMLResponse", "sessionid", "JSESSIONID", "session_id", "csrfmiddlewaretoken"),
    *("code_verifier", "profiler_hmac_key", "AccountKey", "tokens", "api_keys", "token_id"),
    *("user[password]", "user%5Bpassword%5D", "api%5Fkey", "api%255Fkey", "$.auth.token"),
    *(FULL_WIDTH, "x" * 5000 + "_password", "header X-Auth-Token"),
]
NOWHERE = [
    *("https_key", "key_name", "keypair", "keypairs", "key_pair", "token_count", "tokenCount"),
    *("public_key", "sort_key", "sort_keys", "primaryKey", "Idempotency-Key", "password_file"),
    *("tokenizer", "secretary", "monkey", "bypass", "compass", "passed", "passengers", "keys_only"),
    *("secret_ref", "secretName", "token_type", "expires_in", "token_url", "password_policy"),
    *("application_credential_id", "access_key_id", "X-Key-Name", "signal", "design", "sign_in"),
    *("X-Openstack-Request-Id", "Content-Type", "Accept", "name", "", "codename", "passive"),
    *("author", "authority", "pinned", "keystone", "session_timeout", "token_expires_at"),
    "x" * 5000,
]


@pytest.mark.parametrize("place", Place)
def test_names_of_secrets_are_known_anywhere(place):
    unknown = [name for name in ANYWHERE if not is_secret(name, "value", place)]

    assert unknown == []


def test_names_of_secrets_are_known_without_a_value():
    assert [name for name in ANYWHERE if not is_secret(name)] == []


@pytest.mark.parametrize("place", [Place.FIELD, Place.QUERY, Place.TEXT])
def test_names_that_resemble_them_are_not(place):
    assert [name for name in NOWHERE if is_secret(name, "value", place)] == []


@pytest.mark.parametrize("name", ["key", "keys", "sig", "sid", "pin", "pass", "auth", "session"])
def test_short_names_count_where_there_is_a_structure(name):
    assert is_secret(name, "value")
    assert is_secret(name, "value", Place.QUERY)
    assert not is_secret(name, "value", Place.TEXT)


def test_every_cookie_is_a_secret():
    assert is_secret("theme", "dark", Place.COOKIE)


@pytest.mark.parametrize("value", [None, True, False])
def test_what_holds_nothing_is_no_secret(value):
    assert not is_secret("password", value)
    assert not is_secret("theme", value, Place.COOKIE)


@pytest.mark.parametrize("name", ["tokens", "max_tokens", "api_keys", "passwords"])
def test_numbers_under_a_plural_are_counts(name):
    assert not is_secret(name, 100)
    assert not is_secret(name, "100")
    assert not is_secret(name, [1, 2.5])
    assert is_secret(name, ["value"])
    assert is_secret("pin", 1234)
    assert is_secret("password", 1234)


def test_a_section_is_looked_into_and_a_pair_is_not():
    assert not is_secret("auth", {"identity": {"methods": ["password"]}})
    assert not is_secret("password", {"user": {"name": "demo"}})
    assert is_secret("auth", ["demo", "value"])
    assert is_secret("password", {"old": "value", "new": "value"})


@pytest.mark.parametrize(
    ("beside", "found"),
    [
        ({"code", "state"}, True),
        ({"code", "grant_type", "redirect_uri"}, True),
        ({"code"}, False),
        ({"code", "limit", "sort"}, False),
    ],
)
def test_a_code_is_a_secret_of_a_login_only(beside, found):
    beside = names_beside(map(str.upper, beside))

    assert is_secret("Code", "SplxlOBe", Place.QUERY, beside) is found
    assert not is_secret("code", 200, Place.FIELD, beside)
    assert not is_secret("code", "200", Place.TEXT, beside)


def test_a_state_is_a_secret_beside_a_code_only():
    assert is_secret("state", "af0ifjsldkj", Place.QUERY, ["code", "state"])
    assert not is_secret("state", "active", Place.QUERY, ["state", "limit"])


@pytest.mark.parametrize(
    ("path", "found"),
    [("/oauth2/callback", True), ("/login", True), ("/v2.1/servers", False), ("/oauthor", False)],
)
def test_a_path_may_say_that_it_is_a_login(path, found):
    assert is_secret("code", "SplxlOBe", Place.QUERY, names_beside(["code"], path)) is found


@pytest.mark.parametrize(
    ("path", "secrets"),
    [
        ("/reset/9f8e7d6c5b4a39281706", ["9f8e7d6c5b4a39281706"]),
        ("/password-reset/MQ/c4x9f2-aabbccddeeff00112233", ["c4x9f2-aabbccddeeff00112233"]),
        ("/users/invitations/QWxhZGRpbjpvcGVuIHNlc2FtZQ", ["QWxhZGRpbjpvcGVuIHNlc2FtZQ"]),
        ("/v2.0/tokens/0123456789abcdef0123456789abcdef", ["0123456789abcdef0123456789abcdef"]),
        (
            "/verify/email/6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
        ),
        ("/v2.1/servers/6ba7b810-9dad-11d1-80b4-00c04fd430c8", []),
        ("/v3/auth/tokens", []),
        ("/reset/password/confirmation", []),
        ("/a/b/reset", []),
    ],
)
def test_what_follows_a_reset_in_a_path_is_a_secret(path, secrets):
    segments = path.split("/")

    found = secret_segments(segments)

    assert [one for one, secret in zip(segments, found, strict=True) if secret] == secrets
