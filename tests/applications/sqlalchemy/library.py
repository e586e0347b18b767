"""Runs the library: migrations that Alembic generates from the models, reflection of what they made, the ORM on it."""

import contextlib
import datetime as dt
import decimal
import io
import os
import pathlib
import shutil
import sys
import threading

import sqlalchemy as sa
from alembic import command, config
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import orm
from sqlalchemy.dialects import mysql
from sqlalchemy.ext import automap

import models
from models import Author, Base, Book, Kind, Loan, written

HERE = pathlib.Path(__file__).parent
engine = sa.create_engine(models.URL, pool_pre_ping=True)


def differences(connection):
    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    return compare_metadata(context, Base.metadata)


def migrate():
    """A migration is generated on the empty database, applied, found complete, taken back, applied again."""
    scripts = pathlib.Path(os.environ["APPLICATION_WORK"]) / models.URL.drivername
    shutil.copytree(HERE / "alembic", scripts)
    (scripts / "versions").mkdir(exist_ok=True)
    output = io.StringIO()
    cfg = config.Config(stdout=output)
    cfg.set_main_option("script_location", str(scripts))
    with contextlib.redirect_stdout(output):
        command.revision(cfg, "library", autogenerate=True)
        command.upgrade(cfg, "head")
        command.check(cfg)
        command.downgrade(cfg, "base")
        assert sa.inspect(engine).get_table_names() == ["alembic_version"], sa.inspect(engine).get_table_names()
        command.upgrade(cfg, "head")
        command.current(cfg)
    assert "(head)" in output.getvalue(), output.getvalue()


def reflect():
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == models.URL.database
    assert set(inspector.get_table_names()) == {"alembic_version", "author", "book", "loan", "written"}
    columns = {c["name"]: c for c in inspector.get_columns("book")}
    kinds = {name: repr(c["type"]) for name, c in columns.items()}
    assert kinds["id"] == "BIGINT()" and kinds["isbn"] == "CHAR(length=13)", kinds
    assert kinds["year"] == "SMALLINT(unsigned=True)" and kinds["price"] == "DECIMAL(precision=10, scale=2)", kinds
    assert (
        kinds["kind"] == "ENUM('NOVEL', 'ESSAY', 'OTHER')" and kinds["genres"] == "SET('crime', 'love', 'travel')"
    ), kinds
    assert kinds["facts"] == "JSON()" and kinds["cover"] == "BLOB()" and kinds["text"] == "LONGTEXT()", kinds
    assert kinds["bits"] == "BIT(length=5)" and kinds["edition"] == "YEAR()" and kinds["length"] == "TIME(fsp=3)", kinds
    assert kinds["rating"] == "DOUBLE(asdecimal=True)" and kinds["sold"] == "TINYINT(display_width=1)", kinds
    assert kinds["added"] == "DATETIME(fsp=6)" and kinds["changed"] == "TIMESTAMP()", kinds
    assert columns["token"]["type"].collation == "utf8mb4_bin"
    assert (
        columns["gross"]["computed"]["persisted"] is True and "`price`" in columns["gross"]["computed"]["sqltext"]
    ), columns["gross"]
    assert columns["isbn"]["comment"] == "with check digit" and columns["id"]["autoincrement"] is True
    assert columns["year"]["default"] == "'2000'" and columns["added"]["default"] == "CURRENT_TIMESTAMP(6)", columns[
        "year"
    ]
    assert columns["changed"]["default"].upper() == "CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", columns["changed"]
    indexes = {i["name"]: i for i in inspector.get_indexes("book")}
    assert indexes["ix_book_title_year"]["column_names"] == ["title", "year"], indexes
    assert indexes["ix_book_title_year"]["dialect_options"]["mysql_length"] == {"title": 20}, indexes
    assert indexes["uq_book_isbn"]["unique"] is True, indexes
    assert inspector.get_check_constraints("book") == [
        {"name": "ck_book_price", "sqltext": "(`price` >= 0)"}
    ], inspector.get_check_constraints("book")
    assert inspector.get_pk_constraint("written")["constrained_columns"] == ["author_id", "book_id"]
    keys = {k["name"]: k for k in inspector.get_foreign_keys("written")}
    assert keys["fk_written_author_id_author"]["options"] == {"ondelete": "CASCADE", "onupdate": "CASCADE"}, keys
    assert keys["fk_written_book_id_book"]["referred_table"] == "book" and keys["fk_written_book_id_book"][
        "options"
    ] == {"ondelete": "CASCADE"}, keys
    assert inspector.get_table_comment("author") == {"text": "who writes"}
    assert inspector.get_table_options("author")["mysql_engine"] == "InnoDB"
    assert len(inspector.get_multi_columns()) == 5
    automapped = automap.automap_base()
    automapped.prepare(autoload_with=engine)
    assert {"author", "book", "loan"} <= set(automapped.classes.keys())
    assert {r.key for r in sa.inspect(automapped.classes.book).relationships} >= {
        "loan_collection",
        "written_collection",
    }
    # what was reflected makes the same tables in another place
    with engine.begin() as connection:
        reflected = sa.MetaData()
        reflected.reflect(connection)
        before = {
            t: connection.exec_driver_sql(f"SHOW CREATE TABLE {t}").one()[1]
            for t in ("author", "book", "loan", "written")
        }
        for table in reversed(Base.metadata.sorted_tables):
            table.drop(connection)
        reflected.create_all(connection)
        after = {t: connection.exec_driver_sql(f"SHOW CREATE TABLE {t}").one()[1] for t in before}
        assert {t: sorted(line.strip(",") for line in s.splitlines()) for t, s in before.items()} == {
            t: sorted(line.strip(",") for line in s.splitlines()) for t, s in after.items()
        }, (before, after)
    with engine.connect() as connection:
        assert differences(connection) == [], differences(connection)


def use():
    with orm.Session(engine) as session:
        ada, bob = Author(first="Ada", last="Äther", born=dt.date(1815, 12, 10)), Author(first="Bob", last="Berg")
        bob.mentor = ada
        books = [
            Book(
                isbn=f"{9780000000000 + n}",
                title=f"Title {n} 'q' \\ % 🎉",
                year=1990 + n,
                kind=list(Kind)[n % 3],
                price=decimal.Decimal(n) / 4,
                facts={"pages": n * 10, "tags": ["a", {"b": None}], "π": 3.5},
                cover=bytes([0, 39, 92, n]),
                text="t" * n * 1000,
                rating=n / 3,
                genres={"crime", "travel"} if n % 2 else set(),
                bits=n % 32,
                edition=2000 + n,
                length=dt.time(1, 2, 3, 456000),
                token="Tok",
                authors=[ada, bob] if n % 3 == 0 else [ada],
                loans=[Loan(reader=f"reader {n % 4}", since=dt.date(2024, 1, 1) + dt.timedelta(n))],
            )
            for n in range(40)
        ]
        session.add_all([ada, bob, *books])
        session.commit()
        session.expire_all()
        book = session.scalars(sa.select(Book).where(Book.isbn == "9780000000007")).one()
        assert (book.title, book.year, book.kind, book.price) == (
            "Title 7 'q' \\ % 🎉",
            1997,
            Kind.ESSAY,
            decimal.Decimal("1.75"),
        )
        assert (book.gross, book.facts, book.cover) == (
            decimal.Decimal("2.1"),
            {"pages": 70, "tags": ["a", {"b": None}], "π": 3.5},
            bytes([0, 39, 92, 7]),
        )
        assert (len(book.text), book.rating, book.genres, book.bits, book.edition) == (
            7000,
            7 / 3,
            {"crime", "travel"},
            7,
            2007,
        )
        assert book.sold is False and book.added and book.version == 1

        def one(statement):
            return session.execute(statement).one()

        def column(statement):
            return list(session.scalars(statement))

        assert column(sa.select(Book.id).where(Book.facts["pages"].as_integer() > 380)) == [40]
        assert len(column(sa.select(Book).where(Book.facts[("tags", 0)].as_string() == "a"))) == 40
        assert column(sa.select(sa.func.json_extract(Book.facts, "$.pages")).where(Book.id == 2)) in ([10], ["10"])
        assert one(sa.select(sa.func.count(), sa.func.sum(Book.price), sa.func.avg(Book.year))) == (
            40,
            decimal.Decimal("195.00"),
            decimal.Decimal("2009.5"),
        )
        counts = (
            sa.select(Loan.reader, sa.func.count().label("n"))
            .group_by(Loan.reader)
            .having(sa.func.count() > 5)
            .order_by(Loan.reader)
        )
        assert session.execute(counts).all() == [(f"reader {n}", 10) for n in range(4)]
        ranks = sa.select(
            Book.id, sa.func.row_number().over(partition_by=Book.kind, order_by=Book.price.desc()).label("r")
        ).subquery()
        assert sorted(column(sa.select(ranks.c.id).where(ranks.c.r == 1))) == [38, 39, 40]
        chain = (
            sa.select(Author.id, Author.mentor_id, sa.literal(0).label("depth"))
            .where(Author.mentor_id.is_(None))
            .cte("chain", recursive=True)
        )
        below = orm.aliased(Author)
        chain = chain.union_all(
            sa.select(below.id, below.mentor_id, chain.c.depth + 1).join(chain, below.mentor_id == chain.c.id)
        )
        assert session.execute(sa.select(chain.c.id, chain.c.depth).order_by(chain.c.id)).all() == [
            (ada.id, 0),
            (bob.id, 1),
        ]
        latest = (
            sa.select(Loan.since).where(Loan.book_id == Book.id).order_by(Loan.since.desc()).limit(1).lateral("latest")
        )
        assert one(sa.select(Book.id, latest.c.since).join(latest, sa.true()).where(Book.id == 3)) == (
            3,
            dt.date(2024, 1, 3),
        )
        assert len(column(sa.select(Book).where(Book.authors.any(Author.first == "Bob")))) == 14
        assert len(column(sa.select(Book).where(~Book.authors.contains(bob)))) == 26
        loaded = (
            session.scalars(
                sa.select(Book).options(orm.selectinload(Book.authors), orm.joinedload(Book.loans)).order_by(Book.id)
            )
            .unique()
            .all()
        )
        assert [len(b.authors) for b in loaded[:4]] == [2, 1, 1, 2] and all(len(b.loans) == 1 for b in loaded)
        both = sa.union(sa.select(Author.first), sa.select(Loan.reader)).order_by("first").limit(3)
        assert column(both) == ["Ada", "Bob", "reader 0"]
        assert column(
            sa.select(Book.id).where(sa.tuple_(Book.year, Book.kind).in_([(1990, Kind.NOVEL), (1991, Kind.NOVEL)]))
        ) == [1]
        assert column(sa.select(Book.id).where(Book.title.regexp_match(r"Title 3\d? ")).order_by(Book.id)) == [
            4,
            *range(31, 41),
        ]
        assert column(sa.select(Book.title.regexp_replace("[^0-9]+", "")).where(Book.id == 13)) == ["12"]
        assert column(sa.select(sa.func.group_concat(Loan.reader.distinct())).where(Loan.book_id < 4)) == [
            "reader 0,reader 1,reader 2"
        ]
        assert one(
            sa.select(sa.cast(Book.price, sa.Integer), sa.cast(Book.year, sa.String(4)), sa.extract("year", Loan.since))
            .join(Book.loans)
            .where(Book.id == 7)
        ) == (2, "1996", 2024)
        assert column(
            sa.select(Book.id)
            .where(sa.func.find_in_set("travel", Book.genres) > 0)
            .limit(2)
            .offset(1)
            .order_by(Book.id)
        ) == [4, 6]

        insert = mysql.insert(Author).values([{"first": "Ada", "last": "Äther"}, {"first": "New", "last": "One"}])
        session.execute(insert.on_duplicate_key_update(born=dt.date(1816, 1, 1), last=insert.inserted.last))
        assert column(sa.select(Author.born).where(Author.first == "Ada")) == [dt.date(1816, 1, 1)]
        assert session.execute(sa.update(Book).where(Book.id <= 10).values(price=Book.price + 1)).rowcount == 10
        assert (
            session.execute(
                sa.update(Loan).where(Loan.book_id == Book.id, Book.year > 2020).values(until=dt.date(2025, 1, 1))
            ).rowcount
            == 9
        )
        assert session.execute(sa.delete(Loan).where(Loan.book_id == Book.id, Book.year == 2029)).rowcount == 1
        assert session.execute(sa.delete(Book).where(Book.id == 39)).rowcount == 1
        assert column(sa.select(sa.func.count()).select_from(written).where(written.c.book_id == 39)) == [0]
        session.commit()
        for bad, code in (
            (sa.insert(Book).values(isbn="9780000000001", title="x", price=1, sold=False, version=1), 1062),
            (sa.insert(Book).values(isbn="1", title="x", price=-1, sold=False, version=1), 3819),
            (sa.insert(Loan).values(book_id=10**6, reader="x", since=dt.date.today()), 1452),
            (sa.insert(Book).values(isbn="1", title=None, price=1, sold=False, version=1), 1048),
        ):
            try:
                session.execute(bad)
                raise AssertionError(f"{bad} was not refused")
            except sa.exc.IntegrityError as error:
                assert error.orig.args[0] == code, error.orig.args
            except sa.exc.OperationalError as error:
                assert error.orig.args[0] == code == 3819, error.orig.args
            session.rollback()
        with session.begin_nested() as savepoint:
            session.add(Author(first="Gone", last="Gone"))
            session.flush()
            savepoint.rollback()
        assert column(sa.select(Author).where(Author.first == "Gone")) == []
        session.commit()

    with orm.Session(engine) as one_session, orm.Session(engine) as other:
        mine, yours = one_session.get(Book, 5), other.get(Book, 5)
        mine.title = "mine"
        one_session.commit()
        yours.title = "yours"
        try:
            other.commit()
            raise AssertionError("a stale version was written")
        except (orm.exc.StaleDataError, sa.exc.OperationalError):
            other.rollback()
        locked = one_session.scalars(sa.select(Book).where(Book.id == 5).with_for_update()).one()
        assert locked.title == "mine"
        assert [
            b.id for b in other.scalars(sa.select(Book).where(Book.id.in_([5, 6])).with_for_update(skip_locked=True))
        ] == [6]
        other.rollback()
        try:
            other.scalars(sa.select(Book).where(Book.id == 5).with_for_update(nowait=True)).all()
            raise AssertionError("NOWAIT did wait")
        except sa.exc.OperationalError as error:
            assert error.orig.args[0] == 3572, error.orig.args
        other.rollback()
        one_session.rollback()

    for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "READ UNCOMMITTED", "AUTOCOMMIT"):
        with engine.connect().execution_options(isolation_level=level) as connection:
            assert connection.get_isolation_level() == level or level == "AUTOCOMMIT"
    with engine.connect().execution_options(stream_results=True) as connection:
        assert len(list(connection.execute(sa.select(Book.text)).yield_per(7))) == 39

    def count():
        for _ in range(20):
            with orm.Session(engine) as session, session.begin():
                session.execute(
                    sa.update(Author).where(Author.first == "Bob").values(last=sa.func.concat(Author.last, "x"))
                )

    threads = [threading.Thread(target=count) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    with orm.Session(engine) as session:
        assert session.scalars(sa.select(Author.last).where(Author.first == "Bob")).one() == "Berg" + "x" * 40


def operate():
    """Alembic's single operations, each found again by reflection."""
    with engine.begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        op.create_table(
            "part",
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("name", sa.String(30), nullable=False),
            sa.Column("size", sa.Integer),
            sa.Column("book_id", sa.BigInteger),
            sa.UniqueConstraint("name", name="uq_part"),
            mysql_comment="a part",
        )
        op.bulk_insert(
            sa.table("part", sa.column("name"), sa.column("size")), [{"name": f"p{n}", "size": n} for n in range(5)]
        )
        op.add_column("part", sa.Column("extra", sa.Text))
        op.alter_column(
            "part",
            "name",
            existing_type=sa.String(30),
            existing_nullable=False,
            new_column_name="title",
            type_=sa.String(50),
            comment="new",
        )
        op.alter_column(
            "part", "size", existing_type=sa.Integer, type_=sa.BigInteger, server_default="5", nullable=False
        )
        op.create_index("ix_part", "part", ["size", "title"], mysql_length={"title": 3})
        op.create_foreign_key("fk_part_book", "part", "book", ["book_id"], ["id"], ondelete="SET NULL")
        op.create_check_constraint("ck_size", "part", "size < 100")
        op.create_table_comment("part", "parts")
        inspector = sa.inspect(connection)
        columns = {c["name"]: c for c in inspector.get_columns("part")}
        assert (
            columns["title"]["comment"] == "new"
            and columns["title"]["type"].length == 50
            and columns["title"]["nullable"] is False
        )
        assert columns["size"]["default"] == "'5'" and repr(columns["size"]["type"]) == "BIGINT()", columns["size"]
        assert [i["name"] for i in inspector.get_indexes("part")] == [
            "fk_part_book",
            "ix_part",
            "uq_part",
        ], inspector.get_indexes("part")
        assert inspector.get_table_comment("part") == {"text": "parts"}
        op.drop_constraint("ck_size", "part", type_="check")
        op.drop_constraint("fk_part_book", "part", type_="foreignkey")
        op.drop_constraint("uq_part", "part", type_="unique")
        op.drop_index("ix_part", "part")
        op.drop_column("part", "extra")
        op.alter_column("part", "size", existing_type=sa.BigInteger, server_default=None, existing_nullable=False)
        op.execute("UPDATE part SET size = size * 2")
        op.rename_table("part", "piece")
        inspector = sa.inspect(connection)
        inspector.clear_cache()
        assert inspector.get_columns("piece")[2]["default"] is None
        assert connection.execute(sa.text("SELECT SUM(size) FROM piece")).scalar_one() == 20
        op.drop_table("piece")


for step in (migrate, reflect, use, operate):
    step()
with engine.begin() as connection:
    Base.metadata.drop_all(connection)
    connection.execute(sa.text("DROP TABLE alembic_version"))
print(f"the library works with {models.URL.drivername}")
sys.stdout.flush()
