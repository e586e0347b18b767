"""PyMySQL and mysql-connector-python against a running server.

Host, port, user and password come from RAUK_HOST, RAUK_PORT, RAUK_USER, RAUK_PASSWORD. The user must be allowed to create databases and
users. RAUK_REFERENCE=mariadb leaves out what MariaDB does not have, so that the tests themselves can be tried on it.
Ends with 0 when all went well; prints one line a test.
"""
import datetime as dt
import os
import sys
import traceback
from decimal import Decimal

import mysql.connector
import pymysql

HOST = os.environ.get("RAUK_HOST", "127.0.0.1")
PORT = int(os.environ.get("RAUK_PORT", "3306"))
USER = os.environ.get("RAUK_USER", "root")
PASSWORD = os.environ.get("RAUK_PASSWORD", "")
MARIADB = os.environ.get("RAUK_REFERENCE") == "mariadb"
DATABASE = "driver_python"

NO_TLS_PYMYSQL = {"ssl_disabled": True}
TLS_PYMYSQL = {"ssl": {"check_hostname": False, "verify_mode": "none"}}


def pymysql_connect(**more):
    settings = dict(host=HOST, port=PORT, user=USER, password=PASSWORD, database=DATABASE, charset="utf8mb4")
    settings.update(NO_TLS_PYMYSQL)
    settings.update(more)
    return pymysql.connect(**settings)


def connector_connect(**more):
    settings = dict(host=HOST, port=PORT, user=USER, password=PASSWORD, database=DATABASE, use_pure=True, ssl_disabled=True)
    settings.update(more)
    return mysql.connector.connect(**settings)


def one(cursor, statement, parameters=None):
    cursor.execute(statement, parameters) if parameters is not None else cursor.execute(statement)
    return cursor.fetchone()


def equal(got, wanted, what=""):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


def fails(number, action):
    try:
        action()
    except (pymysql.MySQLError, mysql.connector.Error) as error:
        got = error.args[0]
        assert got == number, f"error {got} instead of {number}: {error}"
        return str(error)
    raise AssertionError(f"no error, where {number} was due")


# Column, declaration, value as Python gives it back.
TYPES = [
    ("c_tiny", "TINYINT", -128),
    ("c_tiny_u", "TINYINT UNSIGNED", 255),
    ("c_small", "SMALLINT", -32768),
    ("c_medium", "MEDIUMINT", -8388608),
    ("c_int", "INT", -2147483648),
    ("c_int_u", "INT UNSIGNED", 4294967295),
    ("c_big", "BIGINT", -9223372036854775808),
    ("c_big_u", "BIGINT UNSIGNED", 18446744073709551615),
    ("c_decimal", "DECIMAL(20,4)", Decimal("-1234567890.1230")),
    ("c_decimal_wide", "DECIMAL(65,30)", Decimal("12345678901234567890123456789012345.123456789012345678901234567890")),
    ("c_float", "FLOAT", 1.5),
    ("c_double", "DOUBLE", -2.25e100),
    ("c_char", "CHAR(10)", "aß€"),
    ("c_varchar", "VARCHAR(100)", "it's 😀 \\ \" \n\t"),
    ("c_text", "TEXT", "t" * 5000),
    ("c_longtext", "LONGTEXT", "ü" * 100000),
    ("c_varbinary", "VARBINARY(300)", bytes(range(256))),
    ("c_blob", "BLOB", bytes(reversed(range(256))) * 100),
    ("c_date", "DATE", dt.date(2024, 2, 29)),
    ("c_time", "TIME(6)", dt.timedelta(hours=26, minutes=3, seconds=4, microseconds=500000)),
    ("c_datetime", "DATETIME(6)", dt.datetime(2024, 2, 29, 23, 59, 58, 123456)),
    ("c_datetime_s", "DATETIME", dt.datetime(1999, 12, 31, 23, 59, 59)),
    ("c_timestamp", "TIMESTAMP NULL", dt.datetime(2024, 1, 2, 3, 4, 5)),
    ("c_bool", "BOOLEAN", 1),
    ("c_null", "INT", None),
]


def create_types(cursor):
    cursor.execute("DROP TABLE IF EXISTS types")
    columns = ", ".join(f"{name} {declaration}" for name, declaration, _ in TYPES)
    cursor.execute(f"CREATE TABLE types (id INT PRIMARY KEY, {columns})")


def insert_types():
    names = ", ".join(name for name, _, _ in TYPES)
    return f"INSERT INTO types (id, {names}) VALUES (%s{', %s' * len(TYPES)})"


def check_types(row):
    for (name, _, wanted), got in zip(TYPES, row[1:], strict=True):
        if isinstance(got, bytearray):
            got = bytes(got)
        equal(got, wanted, name)


def test_pymysql_types():
    with pymysql_connect() as db, db.cursor() as cursor:
        create_types(cursor)
        cursor.execute(insert_types(), [1] + [value for _, _, value in TYPES])
        check_types(one(cursor, "SELECT * FROM types WHERE id = 1"))
        db.commit()


def test_connector_types_text_and_binary():
    with connector_connect() as db:
        cursor = db.cursor()
        create_types(cursor)
        values = [value for _, _, value in TYPES]
        cursor.execute(insert_types(), [1] + values)
        check_types(one(cursor, "SELECT * FROM types WHERE id = 1"))
        prepared = db.cursor(prepared=True)
        prepared.execute(insert_types(), [2] + values)
        prepared.execute("SELECT * FROM types WHERE id = %s", (2,))
        check_types(prepared.fetchone())
        # Written in one form, read in the other.
        check_types(one(cursor, "SELECT * FROM types WHERE id = 2"))
        prepared.execute("SELECT * FROM types WHERE id = %s", (1,))
        check_types(prepared.fetchone())
        db.commit()


def test_pymysql_text_and_results():
    with pymysql_connect() as db, db.cursor() as cursor:
        equal(one(cursor, "SELECT 1, 'ß', NULL, 1.50"), (1, "ß", None, Decimal("1.50")))
        equal(one(cursor, "SELECT %s, %s", ("quote ' and \\", b"\xff\x00'\\")), ("quote ' and \\", b"\xff\x00'\\"))
        cursor.execute("DROP TABLE IF EXISTS numbers")
        cursor.execute("CREATE TABLE numbers (n INT PRIMARY KEY AUTO_INCREMENT, t VARCHAR(20))")
        equal(cursor.executemany("INSERT INTO numbers (t) VALUES (%s)", [(f"t{i}",) for i in range(1000)]), 1000)
        cursor.execute("INSERT INTO numbers (t) VALUES ('last')")
        equal(cursor.lastrowid, 1001)
        db.commit()
        equal(cursor.execute("SELECT n, t FROM numbers ORDER BY n"), 1001)
        rows = cursor.fetchall()
        equal((rows[0], rows[-1]), ((1, "t0"), (1001, "last")))
        with db.cursor(pymysql.cursors.SSCursor) as streaming:
            streaming.execute("SELECT n FROM numbers ORDER BY n")
            equal(sum(n for (n,) in streaming), 1001 * 1002 // 2)
        with db.cursor(pymysql.cursors.DictCursor) as names:
            equal(one(names, "SELECT n AS number, t FROM numbers WHERE n = 5"), {"number": 5, "t": "t4"})
        equal(cursor.execute("UPDATE numbers SET t = 'x' WHERE n <= 10"), 10)
        equal(cursor.execute("DELETE FROM numbers WHERE n > 1000"), 1)
        db.commit()


def test_connector_prepared_statements():
    with connector_connect() as db:
        plain = db.cursor()
        plain.execute("DROP TABLE IF EXISTS prepared")
        plain.execute("CREATE TABLE prepared (id INT PRIMARY KEY, a VARCHAR(50), b DOUBLE)")
        cursor = db.cursor(prepared=True)
        for i in range(50):
            cursor.execute("INSERT INTO prepared VALUES (?, ?, ?)", (i, None if i % 5 == 0 else f"a{i}", i / 2))
        db.commit()
        for i in (0, 1, 49):
            cursor.execute("SELECT a, b FROM prepared WHERE id = ?", (i,))
            equal(cursor.fetchone(), (None if i % 5 == 0 else f"a{i}", i / 2))
        cursor.execute("SELECT COUNT(*) FROM prepared WHERE a IS NULL")
        equal(cursor.fetchone(), (10,))
        fails(1062, lambda: cursor.execute("INSERT INTO prepared VALUES (?, ?, ?)", (1, "again", 0.0)))
        fails(1146, lambda: db.cursor(prepared=True).execute("SELECT * FROM nowhere WHERE a = ?", (1,)))


def transactions(db):
    cursor = db.cursor()
    cursor.execute("DROP TABLE IF EXISTS tx")
    cursor.execute("CREATE TABLE tx (id INT PRIMARY KEY, v INT)")

    def count():
        return one(cursor, "SELECT COUNT(*) FROM tx")[0]

    cursor.execute("INSERT INTO tx VALUES (1, 1)")
    db.rollback()
    equal(count(), 0, "after rollback")
    cursor.execute("INSERT INTO tx VALUES (1, 1)")
    db.commit()
    db.rollback()
    equal(count(), 1, "after commit")
    cursor.execute("SAVEPOINT a")
    cursor.execute("INSERT INTO tx VALUES (2, 2)")
    cursor.execute("ROLLBACK TO SAVEPOINT a")
    cursor.execute("INSERT INTO tx VALUES (3, 3)")
    db.commit()
    cursor.execute("SELECT id FROM tx ORDER BY id")
    equal([row[0] for row in cursor.fetchall()], [1, 3], "savepoint")
    db.commit()


def test_pymysql_transactions():
    with pymysql_connect() as db:
        transactions(db)
        with pymysql_connect(autocommit=True) as other, db.cursor() as cursor, other.cursor() as watching:
            cursor.execute("UPDATE tx SET v = 10 WHERE id = 1")
            equal(one(watching, "SELECT v FROM tx WHERE id = 1"), (1,), "not seen before commit")
            db.commit()
            equal(one(watching, "SELECT v FROM tx WHERE id = 1"), (10,), "seen after commit")


def test_connector_transactions():
    with connector_connect() as db:
        transactions(db)
        db.start_transaction(isolation_level="SERIALIZABLE")
        equal(db.in_transaction, True)
        db.rollback()
        db.autocommit = True
        equal(db.autocommit, True)


def errors(db):
    cursor = db.cursor()
    cursor.execute("DROP TABLE IF EXISTS errors")
    cursor.execute("CREATE TABLE errors (id INT PRIMARY KEY, name VARCHAR(3) NOT NULL)")
    cursor.execute("INSERT INTO errors VALUES (1, 'a')")
    db.commit()
    assert "Duplicate entry '1' for key" in fails(1062, lambda: cursor.execute("INSERT INTO errors VALUES (1, 'b')"))
    assert f"Table '{DATABASE}.nowhere' doesn't exist" in fails(1146, lambda: cursor.execute("SELECT * FROM nowhere"))
    fails(1064, lambda: cursor.execute("SELEKT 1"))
    fails(1054, lambda: cursor.execute("SELECT nothing FROM errors"))
    fails(1048, lambda: cursor.execute("INSERT INTO errors VALUES (2, NULL)"))
    fails(1406, lambda: cursor.execute("INSERT INTO errors VALUES (2, 'too long')"))
    fails(1049, lambda: cursor.execute("USE nowhere"))
    equal(one(cursor, "SELECT COUNT(*) FROM errors"), (1,))
    db.rollback()


def test_pymysql_errors():
    with pymysql_connect() as db:
        errors(db)


def test_connector_errors():
    with connector_connect() as db:
        errors(db)


def test_pymysql_multi_statements():
    with pymysql_connect(client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS) as db, db.cursor() as cursor:
        cursor.execute("SELECT 1; DO 0; SELECT 2, 3")
        results = [cursor.fetchall()]
        while cursor.nextset():
            results.append(cursor.fetchall())
        equal([list(rows) for rows in results], [[(1,)], [], [(2, 3)]])
    with pymysql_connect() as db, db.cursor() as cursor:
        fails(1064, lambda: cursor.execute("SELECT 1; SELECT 2"))


def test_connector_multi_statements():
    with connector_connect() as db:
        cursor = db.cursor()
        cursor.execute("SELECT 1; SELECT 2")
        results = [cursor.fetchall()]
        while cursor.nextset():
            results.append(cursor.fetchall())
        equal(results, [[(1,)], [(2,)]])


def test_large_packets():
    half = b"\x00\xff'\\" * (2_500_000)
    with pymysql_connect(max_allowed_packet=64 << 20) as db, db.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS large")
        cursor.execute("CREATE TABLE large (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB)")
        cursor.execute("INSERT INTO large VALUES (1, %s, %s)", (half, b"b" * 10_000_000))
        db.commit()
        row = one(cursor, "SELECT a, b FROM large WHERE id = 1")
        assert row == (half, b"b" * 10_000_000), "20 million bytes in one row"
    with connector_connect() as db:
        cursor = db.cursor(prepared=True)
        cursor.execute("INSERT INTO large VALUES (?, ?, ?)", (2, half, b"c" * 10_000_000))
        # One column at a time: the connector cannot read binary rows of more than one frame.
        for column, wanted in (("a", half), ("b", b"c" * 10_000_000)):
            cursor.execute(f"SELECT {column} FROM large WHERE id = ?", (2,))
            assert bytes(cursor.fetchone()[0]) == wanted, "prepared"
        db.commit()


def cipher(db):
    return one(db.cursor(), "SHOW STATUS LIKE 'Ssl_cipher'")[1]


def test_tls():
    with pymysql_connect() as db:
        equal(cipher(db), "")
    with pymysql_connect(ssl_disabled=False, **TLS_PYMYSQL) as db:
        assert cipher(db) != "", "encrypted"
        with db.cursor() as cursor:
            equal(one(cursor, "SELECT REPEAT('x', 100000)"), ("x" * 100000,))
    with connector_connect(ssl_disabled=False) as db:
        assert cipher(db) != "", "encrypted"


def test_connector_reset_and_change_user():
    with connector_connect() as db:
        cursor = db.cursor()
        cursor.execute("SET @a = 5")
        equal(one(cursor, "SELECT @a"), (5,))
        db.cmd_reset_connection()
        cursor = db.cursor()
        equal(one(cursor, "SELECT @a"), (None,))
        cursor.execute("SET @a = 6")
        db.cmd_change_user(username=USER, password=PASSWORD, database="")
        cursor = db.cursor()
        equal(one(cursor, "SELECT @a, DATABASE()"), (None, None))
        db.cmd_init_db(DATABASE)
        equal(one(db.cursor(), "SELECT DATABASE()"), (DATABASE,))
        db.ping()


def test_users_of_both_plugins():
    plugins = ["mysql_native_password"] if MARIADB else ["mysql_native_password", "caching_sha2_password"]
    with pymysql_connect() as db, db.cursor() as cursor:
        for plugin in plugins:
            name = f"py_{plugin[:6]}"
            cursor.execute(f"DROP USER IF EXISTS {name}@'%'")
            secret = "VIA mysql_native_password USING PASSWORD('s3cret-x')" if MARIADB else f"WITH {plugin} BY 's3cret-x'"
            cursor.execute(f"CREATE USER {name}@'%' IDENTIFIED {secret}")
            cursor.execute(f"GRANT ALL ON {DATABASE}.* TO {name}@'%'")
            # Without TLS, under TLS, and again from the cache.
            for more in ({}, {"ssl_disabled": False, **TLS_PYMYSQL}, {}):
                with pymysql_connect(user=name, password="s3cret-x", **more) as own, own.cursor() as c:
                    equal(one(c, "SELECT CURRENT_USER()"), (f"{name}@%",))
            for more in ({}, {"ssl_disabled": False}):
                with connector_connect(user=name, password="s3cret-x", **more) as own:
                    equal(one(own.cursor(), "SELECT CURRENT_USER()"), (f"{name}@%",))
            fails(1045, lambda: pymysql_connect(user=name, password="wrong"))
            fails(1045, lambda: connector_connect(user=name, password="wrong", ssl_disabled=False))
            fails(1044, lambda: pymysql_connect(user=name, password="s3cret-x", database="mysql"))
            cursor.execute(f"DROP USER {name}@'%'")
            fails(1045, lambda: pymysql_connect(user=name, password="s3cret-x"))


def main():
    with pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD) as db, db.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
    only = sys.argv[1:]
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (only and name not in only):
            continue
        try:
            test()
            print(f"python {name}: ok")
        except Exception:
            failed += 1
            print(f"python {name}: FAILED")
            traceback.print_exc(file=sys.stdout)
    with pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD) as db, db.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {DATABASE}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
