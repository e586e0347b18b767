"""Writes: bulk operations, upserts, constraints and their errors, cascades, transactions, locks, inheritance."""

import threading
from decimal import Decimal

from django.contrib.auth import authenticate
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db import DatabaseError, DataError, IntegrityError, OperationalError, connection, models, transaction
from django.db.models import F, ProtectedError, RestrictedError, Value
from django.db.models.functions import Concat
from django.test import TestCase, TransactionTestCase
from django.test.utils import CaptureQueriesContext, isolate_apps

from ..models import Book, Category, Customer, Friendship, Line, Order, Product, Tag
from .base import Rows


class Writes(Rows, TestCase):
    def test_bulk(self):
        made = Category.objects.bulk_create([Category(name=f"c{n}", position=n) for n in range(2500)], batch_size=1000)
        self.assertEqual(Category.objects.filter(name__startswith="c").count(), 2500)
        self.assertEqual(len(made), 2500)
        Category.objects.bulk_create([Category(name="c1"), Category(name="d1")], ignore_conflicts=True)
        self.assertEqual(Category.objects.filter(name="d1").count(), 1)
        Category.objects.bulk_create(
            [Category(name="c1", position=77), Category(name="d2", position=78)],
            update_conflicts=True,
            update_fields=["position"],
        )
        self.assertEqual(
            sorted(
                Category.objects.filter(position__in=(77, 78), name__in=["c1", "d2"]).values_list("name", "position")
            ),
            [("c1", 77), ("d2", 78)],
        )
        some = list(Category.objects.filter(name__in=["c2", "c3", "c4"]))
        for category in some:
            category.position += 100
        self.assertEqual(Category.objects.bulk_update(some, ["position"]), 3)
        self.assertEqual(Category.objects.get(name="c3").position, 103)

    def test_updates_and_deletes(self):
        self.assertEqual(
            Product.objects.filter(stock=0).update(stock=F("stock") + 9, name=Concat("name", Value("!"))), 3
        )
        self.assertEqual(Product.objects.filter(name__endswith="!", stock=9).count(), 3)
        self.assertEqual(Product.objects.filter(category__name="toys").update(active=False), 6)
        Product.objects.order_by("-id").update(stock=F("id"))
        product = Product.objects.get(slug="product-1")
        product.stock = F("stock") + 1
        product.save()
        product.refresh_from_db()
        self.assertEqual(product.stock, product.pk + 1)
        self.assertEqual(Line.objects.filter(order__customer=self.customers[0]).delete()[0], 15)
        self.assertEqual(self.orders[1].delete(), (4, {"shop.Line": 3, "shop.Order": 1}))
        self.assertEqual(Tag.objects.filter(products__stock__gt=0).distinct().delete()[1]["shop.Tag"], 3)
        with self.assertRaises(ProtectedError):
            self.tools.delete()
        with self.assertRaises(RestrictedError):
            Line.objects.first().product.delete()
        self.assertEqual(Tag.objects.get_or_create(name="again")[1], True)
        self.assertEqual(Tag.objects.get_or_create(name="again")[1], False)
        self.assertEqual(Category.objects.update_or_create(name="all", defaults={"position": 5})[1], False)

    def test_constraints(self):
        def refused(error, **kwargs):
            with self.assertRaises(error) as caught, transaction.atomic():
                Product.objects.create(**{"name": "x", "slug": "x", "price": 1, **kwargs})
            return caught.exception.args

        self.assertEqual(refused(IntegrityError, slug="product-1")[0], 1062)
        self.assertEqual(refused(IntegrityError, name="product 1", size="M")[0], 1062)
        code, text = refused(IntegrityError, price=-1)
        self.assertIn("price_not_negative", text)
        self.assertEqual(code, 3819)
        self.assertEqual(refused(IntegrityError, size="X")[0], 3819)
        self.assertEqual(refused(DataError, name="n" * 121)[0], 1406)
        self.assertEqual(refused(DataError, price=Decimal("99999999999.99"))[0], 1264)
        self.assertEqual(refused(IntegrityError, name=None)[0], 1048)
        with self.assertRaises(ValidationError):
            Product(name="product 1", slug="other", price=1, size="M").validate_constraints()
        with self.assertRaises(ValidationError):
            Product(name="p", slug="p", price=-1).validate_constraints()
        with self.assertRaises(IntegrityError), transaction.atomic():
            Line.objects.create(order_id=10**9, product=self.products[0], price=1)
        with self.assertRaises(IntegrityError), transaction.atomic():
            Friendship.objects.create(one=self.customers[0], other=self.customers[1], since="2024-01-01")
        with self.assertRaises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT * FROM nowhere")
        connection.check_constraints()

    def test_inheritance(self):
        book = Book.objects.create(
            name="book", slug="book", price=5, isbn="9783000000001", pages=300, category=self.toys
        )
        self.assertEqual(Product.objects.get(slug="book").book, book)
        self.assertEqual(
            Book.objects.filter(price__lt=6, category__name="toys").update(pages=F("pages") + 1, price=F("price") + 1),
            1,
        )
        book.refresh_from_db()
        self.assertEqual((book.pages, book.price, book.with_tax), (301, 6, Decimal("7.2")))
        book.delete()
        self.assertFalse(Product.objects.filter(slug="book").exists())

    def test_accounts_and_cache(self):
        self.assertEqual(authenticate(username="ada", password="pass-ada"), self.customers[0].user)
        self.assertIsNone(authenticate(username="ada", password="wrong"))
        group = Group.objects.create(name="sellers")
        group.permissions.add(Permission.objects.get(codename="discount"))
        user = User.objects.get(username="bob")
        user.groups.add(group)
        self.assertTrue(user.has_perm("shop.discount"))
        self.assertEqual(
            User.objects.with_perm(
                "shop.discount", include_superusers=False, backend="django.contrib.auth.backends.ModelBackend"
            ).get(),
            user,
        )
        cache.set_many({f"k{n}": {"n": n} for n in range(20)}, 60)
        self.assertEqual(cache.get("k7"), {"n": 7})
        self.assertEqual(cache.add("k7", 0), False)
        cache.set("count", 1)
        self.assertEqual(cache.incr("count", 4), 5)
        self.assertEqual(cache.touch("k7", 100), True)
        self.assertEqual(len(cache.get_many([f"k{n}" for n in range(30)])), 20)
        cache.delete("k7")
        self.assertIsNone(cache.get("k7"))
        cache.clear()


class Transactions(Rows, TransactionTestCase):
    def setUp(self):
        self.setUpTestData()

    def test_savepoints(self):
        with transaction.atomic():
            Tag.objects.create(name="outer")
            with self.assertRaises(IntegrityError), transaction.atomic():
                Tag.objects.create(name="inner")
                Category.objects.create(name="all")
            sid = transaction.savepoint()
            Tag.objects.create(name="gone")
            transaction.savepoint_rollback(sid)
            Tag.objects.create(name="kept")
        self.assertEqual(
            set(Tag.objects.filter(name__in=["outer", "inner", "gone", "kept"]).values_list("name", flat=True)),
            {"outer", "kept"},
        )
        done = []
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            Tag.objects.create(name="lost")
            transaction.on_commit(lambda: done.append(1))
            1 / 0
        self.assertEqual((Tag.objects.filter(name="lost").exists(), done), (False, []))

    def test_locks(self):
        found = []

        def other(**options):
            try:
                with transaction.atomic():
                    found.append(
                        list(
                            Product.objects.select_for_update(**options).order_by("id").values_list("id", flat=True)[:3]
                        )
                    )
            except OperationalError as error:
                found.append(error.args[0])
            finally:
                connection.close()

        with transaction.atomic():
            first = (
                Product.objects.select_for_update(of=("self",)).select_related("category").get(pk=self.products[0].pk)
            )
            for options in ({"skip_locked": True}, {"nowait": True}):
                thread = threading.Thread(target=other, kwargs=options)
                thread.start()
                thread.join()
            first.stock = 100
            first.save()
        ids = [p.pk for p in self.products]
        self.assertEqual(found, [ids[1:4], 3572])

    def test_counters_of_many_threads(self):
        def count():
            try:
                for _ in range(25):
                    with transaction.atomic():
                        product = Product.objects.select_for_update().get(slug="product-1")
                        product.stock += 1
                        product.save(update_fields=["stock"])
            finally:
                connection.close()

        before = Product.objects.get(slug="product-1").stock
        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(Product.objects.get(slug="product-1").stock, before + 100)

    @isolate_apps("shop")
    def test_schema_editor(self):
        class Thing(models.Model):
            name = models.CharField(max_length=30, null=True)
            number = models.IntegerField(default=3)

            class Meta:
                app_label = "shop"

        def field(kind, name="name", **kwargs):
            new = kind(**kwargs)
            new.set_attributes_from_name(name)
            new.model = Thing
            return new

        with connection.schema_editor() as editor:
            editor.create_model(Thing)
        Thing.objects.bulk_create(Thing(name=str(n) if n % 2 else None) for n in range(10))
        old = Thing._meta.get_field("name")
        steps = [
            field(models.TextField, null=True),
            field(models.CharField, max_length=20, null=True, db_index=True),
            field(models.CharField, max_length=20, null=True, unique=True),
            field(models.CharField, max_length=20, null=True, db_collation="utf8mb4_bin"),
            field(models.IntegerField, null=True),
            field(models.DecimalField, max_digits=9, decimal_places=3, null=True),
            field(models.CharField, name="title", max_length=30, null=True, db_comment="a title", db_default="t"),
        ]
        for new in steps:
            with connection.schema_editor() as editor:
                editor.alter_field(Thing, old, new, strict=False)
            old = new
        with connection.cursor() as cursor:
            cursor.execute("SELECT title FROM shop_thing ORDER BY title IS NULL, title")
            self.assertEqual(
                [row[0] for row in cursor.fetchall()], ["1.000", "3.000", "5.000", "7.000", "9.000"] + [None] * 5
            )
            described = {c.name: c for c in connection.introspection.get_table_description(cursor, "shop_thing")}
            self.assertEqual((described["title"].comment, described["title"].default), ("a title", "t"))
            self.assertTrue(described["title"].null_ok)
        with connection.schema_editor() as editor:
            editor.remove_field(Thing, Thing._meta.get_field("number"))
            editor.delete_model(Thing)
        with CaptureQueriesContext(connection) as queries:
            Product.objects.count()
        self.assertEqual(len(queries), 1)
