"""The rows that the tests begin with."""

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User

from ..models import Category, Customer, Friendship, Line, Order, Product, Tag

VIENNA = ZoneInfo("Europe/Vienna")


def at(*numbers):
    return dt.datetime(*numbers, tzinfo=VIENNA)


class Rows:
    @classmethod
    def setUpTestData(cls):
        cls.root = Category.objects.create(name="all")
        cls.tools = Category.objects.create(name="tools", parent=cls.root, position=1)
        cls.toys = Category.objects.create(name="toys", parent=cls.root, position=2)
        cls.tags = Tag.objects.bulk_create(Tag(name=name) for name in ("new", "red", "sale"))
        cls.products = [
            Product.objects.create(
                name=f"product {n}",
                slug=f"product-{n}",
                price=Decimal(n) * Decimal("10.25"),
                stock=n % 4,
                weight=n / 3,
                size="SML"[n % 3],
                active=n % 5 != 0,
                released=dt.date(2024, 1 + n % 12, 1 + n),
                opens=dt.time(8, n, 30, 125000),
                warranty=dt.timedelta(days=n, seconds=n, microseconds=n),
                category=(cls.tools, cls.toys)[n % 2],
                attributes={
                    "n": n,
                    "colours": ["red", "blue"][: n % 3],
                    "size": {"w": n * 1.5, "h": None},
                    "even": n % 2 == 0,
                },
                picture=bytes(range(n)),
                source=f"192.0.2.{n}",
                description="long " * n,
            )
            for n in range(1, 13)
        ]
        for n, product in enumerate(cls.products):
            product.tags.set(cls.tags[: n % 4])
        cls.customers = [
            Customer.objects.create(
                user=User.objects.create_user(name, f"{name}@example.org", "pass-" + name),
                born=dt.date(1990 + n, 2, 28),
            )
            for n, name in enumerate(("ada", "bob", "cleo"))
        ]
        Friendship.objects.create(one=cls.customers[0], other=cls.customers[1], since=dt.date(2020, 2, 29))
        cls.orders = []
        for n in range(9):
            order = Order.objects.create(
                customer=cls.customers[n % 2], state=1 + n % 3, placed=at(2024, 1 + n, 28, 23, 30)
            )
            Line.objects.bulk_create(
                Line(order=order, product=product, amount=1 + n, price=product.price)
                for product in cls.products[n : n + 3]
            )
            cls.orders.append(order)
