"""What the ORM can ask: lookups, joins, aggregates, subqueries, windows, functions, set operations, JSON."""

import datetime as dt
import hashlib
from decimal import Decimal

from django.db import connection
from django.db.models import (
    Avg,
    Case,
    CharField,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    FloatField,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Prefetch,
    Q,
    StdDev,
    Subquery,
    Sum,
    Value,
    Variance,
    When,
    Window,
)
from django.db.models import functions as fn
from django.db.models.fields.json import KT
from django.test import TestCase

from ..models import Category, Customer, Line, Order, PaidOrder, Product, Tag
from .base import Rows, at


class Lookups(Rows, TestCase):
    def names(self, **kwargs):
        return list(Product.objects.filter(**kwargs).values_list("id", flat=True))

    def count(self, *args, **kwargs):
        return Product.objects.filter(*args, **kwargs).count()

    def test_values_come_back_as_they_were_stored(self):
        p = Product.objects.get(slug="product-7")
        self.assertEqual(p.code, self.products[6].code)
        self.assertEqual((p.price, p.tax, p.with_tax), (Decimal("71.75"), Decimal("0.2"), Decimal("86.1")))
        self.assertEqual(p.label, "PRODUCT-7: M")
        self.assertEqual((p.weight, p.active, p.released), (7 / 3, True, dt.date(2024, 8, 8)))
        self.assertEqual(
            (p.opens, p.warranty), (dt.time(8, 7, 30, 125000), dt.timedelta(days=7, seconds=7, microseconds=7))
        )
        self.assertEqual(p.attributes, {"n": 7, "colours": ["red"], "size": {"w": 10.5, "h": None}, "even": False})
        self.assertEqual((bytes(p.picture), p.source), (bytes(range(7)), "192.0.2.7"))
        self.assertEqual(p.created, self.products[6].created)
        self.assertLess(abs((p.seen - p.created).total_seconds()), 60)

    def test_text(self):
        self.assertEqual(self.count(name="PRODUCT 1"), 1)
        self.assertEqual(self.count(name__exact="product 1"), 1)
        self.assertEqual(self.count(name__iexact="PRODUCT 1"), 1)
        self.assertEqual(self.count(name__contains="duct 1"), 4)
        self.assertEqual(self.count(name__contains="DUCT 1"), 0)
        self.assertEqual(self.count(name__icontains="DUCT 1"), 4)
        self.assertEqual(self.count(name__startswith="Prod"), 0)
        self.assertEqual(self.count(name__istartswith="Prod"), 12)
        self.assertEqual(self.count(name__endswith="1"), 2)
        self.assertEqual(self.count(name__iendswith="T 12"), 1)
        self.assertEqual(self.count(name__regex=r"^product 1[0-2]?$"), 4)
        self.assertEqual(self.count(name__regex=r"^PRODUCT"), 0)
        self.assertEqual(self.count(name__iregex=r"^PRODUCT \d$"), 9)
        self.assertEqual(self.count(name__contains="%"), 0)
        self.assertEqual(self.count(name__contains=r"\_"), 0)
        self.assertEqual(self.count(slug__in=["product-1", "product-2", "other"]), 2)
        self.assertEqual(self.count(category__name__icontains=F("category__parent__name")), 0)

    def test_numbers_dates_and_nulls(self):
        self.assertEqual(self.count(price__range=(Decimal("20.5"), Decimal("51.25"))), 4)
        self.assertEqual(self.count(released__year=2024), 12)
        self.assertEqual(self.count(released__month__gte=11, released__quarter=4), 2)
        self.assertEqual(
            self.count(released__week_day=7), sum(p.released.isoweekday() % 7 + 1 == 7 for p in self.products)
        )
        self.assertEqual(self.count(released__iso_week_day=1), sum(p.released.isoweekday() == 1 for p in self.products))
        self.assertEqual(self.count(released__week=self.products[3].released.isocalendar()[1]), 1)
        self.assertEqual(self.count(opens__hour=8, opens__minute__lt=5, opens__second=30), 4)
        self.assertEqual(self.count(warranty__gt=dt.timedelta(days=10)), 3)
        self.assertEqual(self.count(homepage="", weight__isnull=False), 12)
        self.assertEqual(self.count(code=self.products[2].code), 1)
        self.assertEqual(self.count(picture=bytes(range(4))), 1)
        self.assertEqual(Order.objects.filter(placed__date=dt.date(2024, 3, 28)).count(), 1)
        self.assertEqual(Order.objects.filter(placed__time=dt.time(23, 30)).count(), 9)
        self.assertEqual(Order.objects.filter(placed__hour=23).count(), 9)
        self.assertEqual(
            Order.objects.filter(placed__gte=at(2024, 3, 28, 23, 30), placed__lt=at(2024, 5, 28, 23, 30)).count(), 2
        )
        self.assertEqual(self.count(~Q(stock=1) & (Q(size="S") | Q(active=False))), 4)
        self.assertEqual(self.count(Q(stock=1) ^ Q(size="S")), 5)

    def test_json(self):
        self.assertEqual(self.count(attributes__n=3), 1)
        self.assertEqual(self.count(attributes__n__gt=9), 3)
        self.assertEqual(self.count(attributes__even=True), 6)
        self.assertEqual(self.count(attributes__size__w=4.5), 1)
        self.assertEqual(self.count(attributes__size__h=None), 12)
        self.assertEqual(self.count(attributes__size__h__isnull=False), 12)
        self.assertEqual(self.count(attributes__colours__0="red"), 8)
        self.assertEqual(self.count(attributes__colours=["red", "blue"]), 4)
        self.assertEqual(self.count(attributes__contains={"even": False}), 6)
        self.assertEqual(self.count(attributes__colours__contains="blue"), 4)
        self.assertEqual(
            self.count(
                attributes__contained_by={"n": 1, "colours": ["red"], "size": {"w": 1.5, "h": None}, "even": False}
            ),
            1,
        )
        self.assertEqual(self.count(attributes__has_key="n"), 12)
        self.assertEqual(self.count(attributes__has_any_keys=["x", "even"]), 12)
        self.assertEqual(self.count(attributes__has_keys=["x", "even"]), 0)
        self.assertEqual(self.count(attributes__colours__0__icontains="RE"), 8)
        self.assertEqual(self.count(attributes__n__in=[1, 2, 99]), 2)
        self.assertEqual(
            self.count(attributes={"n": 3, "colours": [], "size": {"w": 4.5, "h": None}, "even": False}), 1
        )
        got = Product.objects.order_by("-attributes__n").values_list("attributes__n", flat=True)
        self.assertEqual(list(got), list(range(12, 0, -1)))
        rows = (
            Product.objects.annotate(c=KT("attributes__colours__0")).values("c").annotate(n=Count("id")).order_by("c")
        )
        self.assertEqual([(r["c"], r["n"]) for r in rows], [(None, 4), ("red", 8)])
        made = Product.objects.annotate(o=fn.JSONObject(a="name", b=F("stock") + 1, c=Value(None, IntegerField()))).get(
            slug="product-1"
        )
        self.assertEqual(made.o, {"a": "product 1", "b": 2, "c": None})
        arrays = Product.objects.annotate(a=fn.JSONArray("name", "stock")).order_by("id").values_list("a", flat=True)
        self.assertEqual(arrays[1], ["product 2", 2])
        for text in ('q"uo\\te', "ümläut", "emoji 🎉", "a.b", "$"):
            Product.objects.filter(slug="product-1").update(attributes={text: [text]})
            self.assertEqual(Product.objects.get(**{"attributes__contains": {text: [text]}}).attributes, {text: [text]})
            self.assertEqual(self.count(attributes__has_key=text), 1)
            self.assertEqual(self.count(**{f"attributes__{text}__0": text}), 1)

    def test_generic_and_many_to_many(self):
        product = self.products[0]
        product.notes.create(text="first")
        self.assertEqual(Product.objects.get(notes__text="first"), product)
        self.assertEqual(
            list(Tag.objects.annotate(n=Count("products")).values_list("name", "n")),
            [("new", 9), ("red", 6), ("sale", 3)],
        )
        self.assertEqual(self.count(tags="sale"), 3)
        self.assertEqual(Product.objects.exclude(tags__name="new").count(), 3)
        self.assertEqual(Product.objects.filter(tags__in=self.tags).distinct().count(), 9)
        product.related.add(*self.products[1:4])
        self.assertEqual(self.products[2].related.get(), product)
        product.related.remove(self.products[1])
        self.assertEqual(product.related.count(), 2)
        self.assertEqual(self.customers[0].friends.through.objects.get().other, self.customers[1])
        products = Product.objects.prefetch_related(
            "tags", Prefetch("lines", Line.objects.select_related("order__customer__user")), "related", "notes"
        ).select_related("category__parent")
        with self.assertNumQueries(5):
            data = [
                (
                    p.category.parent.name,
                    len(p.tags.all()),
                    [line.order.customer.user.username for line in p.lines.all()],
                )
                for p in products
            ]
        self.assertEqual(len(data), 12)

    def test_iterating_slicing_and_dates(self):
        self.assertEqual(
            [p.pk for p in Product.objects.order_by("-price")[2:5]], [p.pk for p in self.products[-3:-6:-1]]
        )
        self.assertEqual(len(list(Product.objects.iterator(chunk_size=5))), 12)
        self.assertEqual(len(Product.objects.in_bulk(["product-1", "product-2"], field_name="slug")), 2)
        self.assertEqual([d.month for d in Order.objects.order_by().dates("placed", "month")], list(range(1, 10)))
        self.assertEqual([d.hour for d in Order.objects.datetimes("placed", "hour", order="DESC")], [23] * 9)
        self.assertEqual(Product.objects.latest().slug, "product-12")
        self.assertEqual(Product.objects.earliest("price").slug, "product-1")
        self.assertEqual(Product.objects.order_by("?").count(), 12)
        self.assertTrue(Product.objects.filter(pk=self.products[0].pk).exists())
        self.assertEqual(PaidOrder.objects.count(), 3)
        self.assertEqual(len(Product.objects.only("name").defer("description")), 12)
        self.assertIn(
            "by_price", [*connection.introspection.get_constraints(connection.cursor(), Product._meta.db_table)]
        )


class Expressions(Rows, TestCase):
    def test_aggregates(self):
        got = Product.objects.aggregate(
            n=Count("id"),
            sizes=Count("size", distinct=True),
            least=Min("price"),
            most=Max("released"),
            sum=Sum("price"),
            avg=Avg("stock"),
            dev=StdDev("stock"),
            var=Variance("stock", sample=True),
            few=Count("id", filter=Q(stock__lt=2)),
            longest=Max("warranty"),
            total=Sum("warranty"),
            none=Sum("stock", filter=Q(stock=77), default=0),
        )
        self.assertEqual(
            (got["n"], got["sizes"], got["least"], got["most"]), (12, 3, Decimal("10.25"), dt.date(2024, 12, 12))
        )
        self.assertEqual((got["sum"], got["avg"], got["few"], got["none"]), (Decimal("799.50"), 1.5, 6, 0))
        self.assertAlmostEqual(got["dev"], 1.1180339887)
        self.assertAlmostEqual(got["var"], 1.3636363636)
        self.assertEqual(got["longest"], dt.timedelta(days=12, seconds=12, microseconds=12))
        self.assertEqual(got["total"], dt.timedelta(days=78, seconds=78, microseconds=78))
        rows = (
            Category.objects.filter(parent__isnull=False)
            .annotate(
                n=Count("products"), worth=Sum(F("products__price") * F("products__stock")), top=Max("products__price")
            )
            .filter(n__gt=1)
            .order_by("name")
            .values_list("name", "n", "worth", "top")
        )
        self.assertEqual(
            list(rows),
            [("tools", 6, Decimal("369.00"), Decimal("123.00")), ("toys", 6, Decimal("799.50"), Decimal("112.75"))],
        )
        by_month = (
            Order.objects.annotate(month=fn.TruncMonth("placed"))
            .order_by("month")
            .values("month")
            .annotate(n=Count("lines"), worth=Sum(F("lines__price") * F("lines__amount")))
        )
        self.assertEqual([(r["month"], r["n"]) for r in by_month][:2], [(at(2024, 1, 1), 3), (at(2024, 2, 1), 3)])

    def test_subqueries(self):
        newest = Order.objects.filter(customer=OuterRef("pk")).order_by("-placed")
        rows = Customer.objects.annotate(
            last=Subquery(newest.values("placed")[:1]), has=Exists(newest.filter(state=3))
        ).order_by("pk")
        self.assertEqual(
            [(r.last, r.has) for r in rows],
            [(at(2024, 9, 28, 23, 30), True), (at(2024, 8, 28, 23, 30), True), (None, False)],
        )
        totals = (
            Line.objects.filter(product=OuterRef("pk"))
            .order_by()
            .values("product")
            .annotate(t=Sum("amount"))
            .values("t")
        )
        got = (
            Product.objects.annotate(sold=fn.Coalesce(Subquery(totals), 0))
            .filter(sold__gt=0)
            .order_by("-sold", "id")
            .values_list("slug", "sold")
        )
        self.assertEqual(list(got)[:2], [("product-9", 24), ("product-8", 21)])
        self.assertEqual(Product.objects.filter(pk__in=Line.objects.filter(amount__gt=8).values("product")).count(), 3)
        self.assertEqual(Product.objects.filter(~Exists(Line.objects.filter(product=OuterRef("pk")))).count(), 1)
        self.assertEqual(Product.objects.filter(price__gt=Product.objects.aggregate(a=Avg("price"))["a"]).count(), 6)

    def test_windows(self):
        rows = Product.objects.annotate(
            number=Window(fn.RowNumber(), partition_by="size", order_by="price"),
            rank=Window(fn.Rank(), order_by=F("stock").desc()),
            before=Window(fn.Lag("name", default=Value("-")), order_by="id"),
            running=Window(Sum("price"), order_by="id"),
            share=Window(fn.CumeDist(), order_by="price"),
            quarter=Window(fn.Ntile(4), order_by="price"),
            first=Window(fn.FirstValue("slug"), partition_by="size", order_by="-price"),
        ).order_by("id")
        row = rows[4]
        self.assertEqual(
            (row.number, row.rank, row.before, row.running, row.quarter, row.first),
            (2, 7, "product 4", Decimal("153.75"), 2, "product-11"),
        )
        self.assertAlmostEqual(row.share, 5 / 12)
        best = (
            Product.objects.annotate(r=Window(fn.RowNumber(), partition_by="size", order_by="-price"))
            .filter(r=1)
            .order_by("slug")
        )
        self.assertEqual([p.slug for p in best], ["product-10", "product-11", "product-12"])

    def test_cases_and_functions(self):
        got = (
            Product.objects.annotate(
                kind=Case(
                    When(price__lt=50, then=Value("cheap")),
                    When(price__lt=100, then=Value("fair")),
                    default=Value("dear"),
                )
            )
            .values("kind")
            .annotate(n=Count("id"))
            .order_by("kind")
        )
        self.assertEqual([(r["kind"], r["n"]) for r in got], [("cheap", 4), ("dear", 3), ("fair", 5)])
        p = Product.objects.annotate(
            up=fn.Upper("name"),
            low=fn.Lower(Value("ÄÖ")),
            left=fn.Left("name", 4),
            right=fn.Right("name", 1),
            sub=fn.Substr("name", 2, 3),
            index=fn.StrIndex("name", Value("duct")),
            length=fn.Length("name"),
            pad=fn.LPad("size", 4, Value("*")),
            rep=fn.Repeat("size", 3),
            replaced=fn.Replace("name", Value("product"), Value("thing")),
            back=fn.Reverse("name"),
            trim=fn.Trim(Value("  x ")),
            concat=fn.Concat("name", Value("/"), "size", Value("/"), "weight", output_field=CharField()),
            md=fn.MD5("slug"),
            sha=fn.SHA256("slug"),
            sha2=fn.SHA512("slug"),
            char=fn.Chr(Value(65)),
            ord=fn.Ord("size"),
            absolute=fn.Abs(F("stock") - 5),
            ceil=fn.Ceil("price"),
            floor=fn.Floor("price"),
            rounded=fn.Round("price", precision=1),
            power=fn.Power("stock", 2),
            mod=fn.Mod("stock", 2),
            root=fn.Sqrt("stock"),
            sign=fn.Sign(F("stock") - 2),
            pi=fn.Pi(),
            log=fn.Log(Value(2.0), Value(8.0)),
            sine=fn.Sin(Value(0.0)),
            deg=fn.Degrees(fn.Radians(Value(90.0))),
            great=fn.Greatest("stock", 2),
            least=fn.Least("stock", 2),
            nothing=fn.NullIf("size", Value("S")),
            cast=fn.Cast("price", IntegerField()),
            text=fn.Cast("stock", Product._meta.get_field("name")),
            divided=ExpressionWrapper(F("stock") / Value(2.0), FloatField()),
            collated=fn.Collate("name", "utf8mb4_bin"),
            bits=F("stock").bitand(3),
            xor=F("stock").bitxor(1),
            shift=F("stock").bitleftshift(2),
        ).get(slug="product-3")
        self.assertEqual(
            (p.up, p.low, p.left, p.right, p.sub, p.index, p.length), ("PRODUCT 3", "äö", "prod", "3", "rod", 4, 9)
        )
        self.assertEqual((p.pad, p.rep, p.replaced, p.back, p.trim), ("***S", "SSS", "thing 3", "3 tcudorp", "x"))
        self.assertEqual((p.concat, p.char, p.ord), ("product 3/S/1", "A", 83))
        hashes = [getattr(hashlib, name)(b"product-3").hexdigest() for name in ("md5", "sha256", "sha512")]
        self.assertEqual([p.md, p.sha, p.sha2], hashes)
        self.assertEqual(
            (p.absolute, p.ceil, p.floor, p.rounded, p.power, p.mod, p.sign), (2, 31, 30, Decimal("30.8"), 9, 1, 1)
        )
        self.assertEqual(
            (p.great, p.least, p.nothing, p.cast, p.text, p.divided, p.bits, p.xor, p.shift),
            (3, 2, None, 31, "3", 1.5, 3, 2, 12),
        )
        for value, want in ((p.root, 3**0.5), (p.pi, 3.14159265358979), (p.log, 3.0), (p.sine, 0.0), (p.deg, 90.0)):
            self.assertAlmostEqual(value, want, places=6)

    def test_times(self):
        o = Order.objects.annotate(
            year=fn.ExtractYear("placed"),
            iso=fn.ExtractIsoYear("placed"),
            week=fn.ExtractWeek("placed"),
            day=fn.ExtractDay("placed"),
            weekday=fn.ExtractWeekDay("placed"),
            hour=fn.ExtractHour("placed"),
            to_day=fn.TruncDay("placed"),
            to_hour=fn.TruncHour("placed"),
            to_week=fn.TruncWeek("placed"),
            to_quarter=fn.TruncQuarter("placed"),
            to_year=fn.TruncYear("placed"),
            date=fn.TruncDate("placed"),
            time=fn.TruncTime("placed"),
            later=ExpressionWrapper(
                F("placed") + dt.timedelta(days=1, hours=2, microseconds=5), Order._meta.get_field("placed")
            ),
            since=F("placed") - Value(at(2024, 1, 1)),
            utc=fn.ExtractHour("placed", tzinfo=dt.timezone.utc),
        ).get(pk=self.orders[6].pk)
        self.assertEqual((o.year, o.iso, o.week, o.day, o.weekday, o.hour, o.utc), (2024, 2024, 30, 28, 1, 23, 21))
        self.assertEqual((o.to_day, o.to_hour, o.to_week), (at(2024, 7, 28), at(2024, 7, 28, 23), at(2024, 7, 22)))
        self.assertEqual(
            (o.to_quarter, o.to_year, o.date, o.time),
            (at(2024, 7, 1), at(2024, 1, 1), dt.date(2024, 7, 28), dt.time(23, 30)),
        )
        self.assertEqual(o.later, at(2024, 7, 30, 1, 30, 0, 5))
        self.assertEqual(
            o.since, at(2024, 7, 28, 23, 30).astimezone(dt.timezone.utc) - at(2024, 1, 1).astimezone(dt.timezone.utc)
        )
        self.assertLess(
            abs(
                (Order.objects.annotate(now=fn.Now())[0].now - Order.objects.latest("created").created).total_seconds()
            ),
            60,
        )

    def test_set_operations(self):
        one, two = Product.objects.filter(stock__lte=1), Product.objects.filter(stock__gte=1)
        self.assertEqual(one.union(two).count(), 12)
        self.assertEqual(one.union(two, all=True).count(), 15)
        self.assertEqual(len(one.union(two, all=True).order_by("-price")[:4]), 4)
        self.assertEqual([p.price for p in one.union(two).order_by("price")[:2]], [Decimal("10.25"), Decimal("20.50")])
        if connection.features.supports_select_intersection:
            self.assertEqual(one.intersection(two).count(), 3)
            self.assertEqual(one.difference(two).count(), 3)

    def test_explain_and_raw(self):
        self.assertIn("shop_product", Product.objects.filter(slug="product-1").explain())
        for form in ("json", "tree"):
            self.assertTrue(Product.objects.filter(slug="product-1").explain(format=form))
        rows = Product.objects.raw(
            "SELECT *, price * %s AS twice FROM shop_product WHERE slug LIKE %s ORDER BY id", [2, "product-1%"]
        )
        self.assertEqual([(p.slug, p.twice) for p in rows][0], ("product-1", Decimal("20.50")))
        with connection.cursor() as cursor:
            cursor.execute("SELECT %(a)s, %(b)s", {"a": "it's", "b": None})
            self.assertEqual(cursor.fetchone(), ("it's", None))
            cursor.executemany("INSERT INTO shop_tag (name) VALUES (%s)", [("m1",), ("m2",), ("m3",)])
            self.assertEqual(cursor.rowcount, 3)
