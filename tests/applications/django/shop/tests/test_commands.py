"""Management commands on the database: migrations back and forth, inspectdb, dumps and loads, flush, SQL of migrations."""

import io
import json
import re
import tempfile

from django.core import serializers
from django.core.management import call_command
from django.db import connection
from django.test import TransactionTestCase

from ..models import Product, Shelf
from .base import Rows


def run(*args, **kwargs):
    out = io.StringIO()
    call_command(*args, stdout=out, **kwargs)
    return out.getvalue()


class Commands(Rows, TransactionTestCase):
    def setUp(self):
        self.setUpTestData()

    def test_migrations_back_and_forth(self):
        run("migrate", "shop", "0001", verbosity=0)
        self.assertNotIn("shop_shelves", connection.introspection.table_names())
        run("migrate", "shop", verbosity=0)
        self.assertEqual(Shelf.objects.count(), 200)
        shelf = Shelf.objects.get(place="rack 4")
        self.assertEqual(
            (shelf.capacity, shelf.floor, shelf.opened.isoformat()), (4, 1, "2024-05-06T07:08:09.123456+00:00")
        )
        self.assertIsNone(Shelf.objects.get(place="rack 5").opened)
        run("migrate", check_unapplied=True, verbosity=0)
        run("makemigrations", check_changes=True, dry_run=True, verbosity=0)
        self.assertIn("[X] 0004_shelves", run("showmigrations", "shop"))
        self.assertIn("CREATE TABLE `shop_product`", run("sqlmigrate", "shop", "0001"))

    def test_inspectdb(self):
        text = run("inspectdb", "shop_product", "shop_line", "shop_shelves", "shop_customer", "auth_user", "shop_tag")
        for wanted in (
            r"class ShopProduct\(models.Model\):",
            r"id = models.BigAutoField\(primary_key=True\)",
            r"code = models.CharField\(unique=True, max_length=32\)",
            r"price = models.DecimalField\(max_digits=12, decimal_places=2\)",
            r"attributes = models.JSONField\(\)",
            r"picture = models.TextField\(blank=True, null=True\)|picture = models.BinaryField\(blank=True, null=True\)",
            r"category = models.ForeignKey\('ShopCategory', models.DO_NOTHING, blank=True, null=True\)",
            r"weight = models.FloatField\(blank=True, null=True\)",
            r"active = models.IntegerField\(\)",
            r"opens = models.TimeField\(blank=True, null=True\)",
            r"unique_together = \(\('name', 'size'\),",
            r"order = models.ForeignKey\('ShopOrder', models.DO_NOTHING\)",
            r"amount = models.PositiveIntegerField\(\)",
            r"user = models.OneToOneField\(AuthUser, models.DO_NOTHING\)|user = models.OneToOneField\('AuthUser', models.DO_NOTHING\)",
            r"language = models.CharField\(max_length=5, db_collation='utf8mb4_bin'\)",
            r"place = models.CharField\(max_length=80, db_comment='where it stands'\)",
            r"name = models.CharField\(primary_key=True, max_length=40, db_comment=\"the tag's own text\"\)",
            r"db_table_comment = 'what is sold'",
        ):
            self.assertTrue(re.search(wanted, text), f"{wanted}\n{text}")
        self.assertNotIn("This field type is a guess", text)
        self.assertNotIn("Unable to inspect", text)

    def products_as_data(self):
        data = json.loads(serializers.serialize("json", Product.objects.order_by("pk")))
        for row in data:
            row["fields"]["tags"].sort()
        return data

    def test_dump_flush_load(self):
        before = self.products_as_data()
        dump = run("dumpdata", "--natural-foreign", "--indent=1", "--exclude=contenttypes", "--exclude=auth.permission")
        run("flush", interactive=False, verbosity=0)
        self.assertEqual(Product.objects.count(), 0)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(dump)
            file.flush()
            run("loaddata", file.name, verbosity=0)
        self.assertEqual(self.products_as_data(), before)
        self.assertTrue(run("sqlflush").count("shop_product"))
