import pytest

from osbench.common.text.plain_paths import LIMIT, path
from osbench.edges.traces.sources.details import statement, title


@pytest.mark.parametrize(
    ("sql", "normal"),
    [
        ("SELECT a, b FROM t1 WHERE id = 17", "SELECT a, b FROM t1 WHERE id = ?"),
        ("SELECT * FROM t WHERE n = 'it''s' AND m='x'", "SELECT * FROM t WHERE n = ? AND m=?"),
        ("SELECT 1 FROM t WHERE id IN (1, 2,3)", "SELECT ? FROM t WHERE id IN (...)"),
        ("SELECT 1 FROM t WHERE id IN (%s, %s)", "SELECT ? FROM t WHERE id IN (...)"),
        ("SELECT x FROM t WHERE id IN (:id_1, :id_2)", "SELECT x FROM t WHERE id IN (...)"),
        ("SELECT x FROM t WHERE id = %(id_1)s", "SELECT x FROM t WHERE id = ?"),
        ("INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')", "INSERT INTO t (a, b) VALUES (...)"),
        ("SELECT\n  x -- why\nFROM /* here */ t", "SELECT x FROM t"),
        ("SELECT a::text FROM t LIMIT $1", "SELECT a::text FROM t LIMIT ?"),
        ('SELECT "user" FROM "Order"', 'SELECT "user" FROM "Order"'),
        ('SELECT x FROM t WHERE n = "two words"', "SELECT x FROM t WHERE n = ?"),
        ("SELECT x FROM t WHERE n = 'was cut her", "SELECT x FROM t WHERE n = ?"),
        ("SELECT x FROM t WHERE n = 'was cut \\", "SELECT x FROM t WHERE n = ?"),
        ("SELECT t1.a2 FROM t1 WHERE x > -1.5e3", "SELECT t1.a2 FROM t1 WHERE x > ?"),
    ],
)
def test_statements_lose_their_values(sql, normal):
    assert statement(sql) == normal


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM t WHERE a = 'x--y'\n AND token = 'secret'",
        "SELECT x FROM t WHERE a = 'x/*y' AND token = 'secret' /* z */",
        "SELECT x FROM t WHERE a = 'x#y'\n AND token = 'secret'",
        "INSERT INTO t VALUES ('C:\\', 'secret')",
        "INSERT INTO t VALUES ('C:\\\\', 'secret')",
        "INSERT INTO t VALUES ('it\\'s', 'secret')",
        'SELECT x FROM t WHERE password = "secret"',
        'SELECT x FROM t WHERE password="secret"',
        'SELECT x FROM t WHERE password IN ("a", "secret")',
        'SELECT x FROM t WHERE password LIKE "secret"',
        'SELECT x FROM t WHERE password BETWEEN "a" AND "secret"',
        'ALTER USER a IDENTIFIED BY "secret"',
        "SELECT x FROM t WHERE a = \"it's\" AND b = 'secret'",
        'SELECT x FROM t WHERE a = \'say "\' AND b = "secret"',
        'SELECT x FROM t WHERE a = "C:\\" AND b = "x secret"',
        "SELECT x # don't\nFROM t WHERE a = 'secret'",
        "SELECT x -- don't\nFROM t WHERE a = 'secret'",
        "SELECT x --don't\nFROM t WHERE a = 'secret'",
        "SELECT x /* don't */ FROM t WHERE a = 'secret'",
        "SELECT x /* a /* don't */ ' */ FROM t WHERE a = 'secret'",
        "SELECT x FROM t WHERE a #>> '{x\nsecret}' = 'y'",
        "SELECT x FROM t WHERE `it's` = 'secret'",
        "SELECT x FROM t WHERE a = $$it's$$ AND b = 'secret'",
        "SELECT x FROM t WHERE a = $q$ $$ ' $q$ AND b = 'secret'",
        "SELECT x FROM t WHERE a = $q$secret",
        "SELECT x FROM t /* secret",
        "SELECT x -- a\r don't\nFROM t WHERE a = 'secret'",
    ],
)
def test_no_literal_is_left_however_it_is_quoted(sql):
    found = statement(sql)

    assert "secret" not in found
    assert found.split()[0] == sql.split()[0]


@pytest.mark.parametrize(
    ("sql", "normal"),
    [
        (
            "SELECT x FROM t WHERE a = 'x--y'\n AND token = 'secret' LIMIT 1",
            "SELECT x FROM t WHERE a = ? AND token = ? LIMIT ?",
        ),
        ("SELECT x -- don't\nFROM t WHERE a = 'b'", "SELECT x FROM t WHERE a = ?"),
        ("SELECT x # why\nFROM t WHERE a = 'b'", "SELECT x FROM t WHERE a = ?"),
        (
            "INSERT INTO t VALUES ('C:\\dir', 'b') RETURNING x",
            "INSERT INTO t VALUES (...) RETURNING x",
        ),
        ("SELECT `a`, `b` FROM `t` WHERE `a` = 'x'", "SELECT `a`, `b` FROM `t` WHERE `a` = ?"),
        (
            'SELECT "t"."a" FROM "t" WHERE "t"."a" = "u"."b" ORDER BY "a"',
            'SELECT "t"."a" FROM "t" WHERE "t"."a" = "u"."b" ORDER BY "a"',
        ),
        ("SELECT a$b$c FROM t WHERE d$e$f = 'x'", "SELECT a$b$c FROM t WHERE d$e$f = ?"),
    ],
)
def test_what_no_dialect_reads_differently_keeps_its_rest(sql, normal):
    assert statement(sql) == normal


def test_many_columns_leave_room_for_the_tables():
    columns = ", ".join(f"images.column_{name} AS images_{name}" for name in "abcdef")
    inner = f"SELECT DISTINCT {columns} FROM images WHERE images.deleted = 0"

    assert statement(f"SELECT {columns} FROM ({inner}) AS anon_1") == (
        "SELECT ... FROM (SELECT DISTINCT ... FROM images WHERE images.deleted = ?) AS anon_1"
    )
    assert statement(f"SELECT a FROM t UNION SELECT {columns} FROM u") == (
        "SELECT a FROM t UNION SELECT ... FROM u"
    )
    two = f"SELECT a FROM t WHERE {' AND '.join(f'{name} = {name}' for name in 'abcdefghij')}"
    assert statement(f"{two} UNION SELECT b FROM u") == f"{two} UNION SELECT b FROM u"


def test_lists_of_any_length_are_one_statement():
    lists = [f"DELETE FROM t WHERE id IN ({', '.join('?' * count)})" for count in (1, 2, 50)]

    assert len(set(map(statement, lists))) == 1


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("/v2/queues/4e1f9c/messages", "/v2/queues/{id}/messages"),
        ("/v2.1/servers/12?limit=5", "/v2.1/servers/{id}"),
        ("/v3/auth/tokens", "/v3/auth/tokens"),
        ("/v3/users?name=alice", "/v3/users"),
        ("https://host/v3/users#alice", "/v3/users"),
        ("http://host:80/v2/images/0b9e-1", "/v2/images/{id}"),
        ("/files/" + "x" * 40, "/files/{id}"),
        ("", ""),
    ],
)
def test_paths_lose_their_ids(written, normal):
    assert path(written) == normal


def test_long_statements_are_cut_and_stay_different():
    columns = ", ".join(f"column_{chr(97 + n % 26)}" for n in range(100))

    one, other = statement(f"SELECT {columns} FROM a"), statement(f"SELECT {columns} FROM b")

    assert len(one) <= LIMIT
    assert one != other


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("GET /v2/queues/4e1f9c/messages?token=secret", "GET /v2/queues/{id}/messages"),
        ("DELETE /v3/users/0b9e-1", "DELETE /v3/users/{id}"),
        ("HTTP GET https://secret@host/v3/users#secret", "HTTP GET /v3/users"),
        ("SELECT x FROM t WHERE n = 'secret'", "SELECT x FROM t WHERE n = ?"),
        ("delete from t where id = 17", "delete from t where id = ?"),
        ("db.query: SELECT 'secret'", "db.query: SELECT ?"),
        ("SELECT shop.items", "SELECT shop.items"),
        ("queues/4e1f9c/claim", "queues/{id}/claim"),
        ("reply_3f2504e04f8911d39a0c0305e82c3301 publish", "reply_{id} publish"),
        ("reply_3F2504E0-4F89-11D3-9A0C-0305E82C3301", "reply_{id}"),
        ("amq.gen-JzTY20BRgKO-HjmUJj0wLg", "amq.gen-{id}"),
        ("login?token=secret", "login"),
        *((name, name) for name in ("GET", "grpc.health.v1.Health/Check", "engine-start-workflow")),
        *((name, name) for name in ("GET /v2.1/servers/{id}", "os_v2 build 3 of 4", "")),
    ],
)
def test_names_lose_the_values_in_them(written, normal):
    assert title(written) == normal
    assert title(normal) == normal
