"""Tables of a library: what SQLAlchemy's types, keys, relations and MySQL's own options can say."""

import datetime as dt
import decimal
import enum
import os

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

URL = sa.URL.create(
    os.environ.get("APPLICATION_DRIVER", "mysql+pymysql"),
    os.environ["APPLICATION_USER"],
    os.environ["APPLICATION_PASSWORD"],
    os.environ["RAUK_HOST"],
    int(os.environ["RAUK_PORT"]),
    os.environ["APPLICATION_DATABASE"],
    query={"charset": "utf8mb4"},
)


class Base(orm.DeclarativeBase):
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        }
    )


class Kind(enum.Enum):
    NOVEL = "novel"
    ESSAY = "essay"
    OTHER = "other"


written = sa.Table(
    "written",
    Base.metadata,
    sa.Column("author_id", sa.ForeignKey("author.id", ondelete="CASCADE", onupdate="CASCADE"), primary_key=True),
    sa.Column("book_id", sa.ForeignKey("book.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.SmallInteger, nullable=False, server_default="1"),
)


class Author(Base):
    __tablename__ = "author"
    __table_args__ = (sa.UniqueConstraint("first", "last"), {"comment": "who writes", "mysql_engine": "InnoDB"})
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    first: orm.Mapped[str] = orm.mapped_column(sa.String(60))
    last: orm.Mapped[str] = orm.mapped_column(sa.String(60), index=True)
    born: orm.Mapped[dt.date | None]
    mentor_id: orm.Mapped[int | None] = orm.mapped_column(sa.ForeignKey("author.id", ondelete="SET NULL"))
    mentor: orm.Mapped["Author | None"] = orm.relationship(remote_side=[id])
    books: orm.Mapped[list["Book"]] = orm.relationship(secondary=written, back_populates="authors", order_by="Book.id")


class Book(Base):
    __tablename__ = "book"
    __table_args__ = (
        sa.CheckConstraint("price >= 0", name="price"),
        sa.Index("ix_book_title_year", "title", "year", mysql_length={"title": 20}),
    )
    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, primary_key=True)
    isbn: orm.Mapped[str] = orm.mapped_column(sa.CHAR(13), unique=True, comment="with check digit")
    title: orm.Mapped[str] = orm.mapped_column(sa.String(200))
    year: orm.Mapped[int] = orm.mapped_column(mysql.SMALLINT(unsigned=True), server_default=sa.text("2000"))
    kind: orm.Mapped[Kind] = orm.mapped_column(sa.Enum(Kind), server_default=Kind.NOVEL.name)
    price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(10, 2))
    gross: orm.Mapped[decimal.Decimal] = orm.mapped_column(
        sa.Numeric(12, 4), sa.Computed("price * 1.2", persisted=True)
    )
    facts: orm.Mapped[dict | None] = orm.mapped_column(sa.JSON)
    cover: orm.Mapped[bytes | None] = orm.mapped_column(sa.LargeBinary)
    text: orm.Mapped[str | None] = orm.mapped_column(mysql.LONGTEXT)
    rating: orm.Mapped[float | None] = orm.mapped_column(sa.Double)
    genres: orm.Mapped[set[str] | None] = orm.mapped_column(mysql.SET("crime", "love", "travel"))
    bits: orm.Mapped[int | None] = orm.mapped_column(mysql.BIT(5))
    edition: orm.Mapped[int | None] = orm.mapped_column(mysql.YEAR)
    length: orm.Mapped[dt.time | None] = orm.mapped_column(mysql.TIME(fsp=3))
    token: orm.Mapped[str | None] = orm.mapped_column(sa.String(32, collation="utf8mb4_bin"))
    sold: orm.Mapped[bool] = orm.mapped_column(default=False)
    added: orm.Mapped[dt.datetime] = orm.mapped_column(
        mysql.DATETIME(fsp=6), server_default=sa.text("CURRENT_TIMESTAMP(6)")
    )
    changed: orm.Mapped[dt.datetime] = orm.mapped_column(
        mysql.TIMESTAMP, server_default=sa.text("CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP")
    )
    version: orm.Mapped[int] = orm.mapped_column(default=1)
    authors: orm.Mapped[list[Author]] = orm.relationship(secondary=written, back_populates="books")
    loans: orm.Mapped[list["Loan"]] = orm.relationship(
        back_populates="book", cascade="all, delete-orphan", passive_deletes=True
    )
    __mapper_args__ = {"version_id_col": version}


class Loan(Base):
    __tablename__ = "loan"
    id: orm.Mapped[int] = orm.mapped_column(mysql.INTEGER(unsigned=True), primary_key=True)
    book_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("book.id", ondelete="CASCADE"))
    reader: orm.Mapped[str] = orm.mapped_column(sa.Unicode(80))
    since: orm.Mapped[dt.date]
    until: orm.Mapped[dt.date | None]
    book: orm.Mapped[Book] = orm.relationship(back_populates="loans")
    __table_args__ = (sa.Index("ix_loan_reader_since", "reader", "since"),)
