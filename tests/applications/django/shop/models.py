"""A shop that uses what models can be made of: every kind of field, relation, constraint, index and inheritance."""

import uuid

from django.contrib.auth.models import User
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Concat, Length, Lower, Now, Upper


class Stamped(models.Model):
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class Category(models.Model):
    name = models.CharField(max_length=60, unique=True)
    parent = models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="children")
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "name"]
        verbose_name_plural = "categories"

    def __str__(self):
        return self.name


class Tag(models.Model):
    name = models.SlugField(max_length=40, primary_key=True, db_comment="the tag's own text")

    def __str__(self):
        return self.name


class Note(models.Model):
    text = models.TextField()
    content_type = models.ForeignKey(ContentType, models.CASCADE)
    object_id = models.PositiveBigIntegerField(db_index=True)
    about = GenericForeignKey()


class Product(Stamped):
    class Size(models.TextChoices):
        SMALL = "S"
        MEDIUM = "M"
        LARGE = "L"

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=120, db_index=True)
    slug = models.SlugField(unique=True)
    description = models.TextField(blank=True)
    price = models.DecimalField(max_digits=12, decimal_places=2, validators=[MinValueValidator(0)])
    tax = models.DecimalField(max_digits=5, decimal_places=4, db_default=0.2)
    with_tax = models.GeneratedField(
        expression=F("price") * (1 + F("tax")),
        output_field=models.DecimalField(max_digits=14, decimal_places=4),
        db_persist=True,
    )
    label = models.GeneratedField(
        expression=Concat(Upper("slug"), Value(": "), F("size")),
        output_field=models.CharField(max_length=80),
        db_persist=False,
    )
    stock = models.IntegerField(default=0)
    weight = models.FloatField(null=True, blank=True)
    size = models.CharField(max_length=1, choices=Size, default=Size.MEDIUM)
    active = models.BooleanField(default=True)
    released = models.DateField(null=True, blank=True)
    opens = models.TimeField(null=True, blank=True)
    warranty = models.DurationField(null=True, blank=True)
    attributes = models.JSONField(default=dict, blank=True)
    picture = models.BinaryField(null=True, blank=True)
    source = models.GenericIPAddressField(null=True, blank=True)
    homepage = models.URLField(blank=True)
    seen = models.DateTimeField(db_default=Now())
    category = models.ForeignKey(Category, models.PROTECT, related_name="products", null=True, blank=True)
    tags = models.ManyToManyField(Tag, blank=True, related_name="products")
    related = models.ManyToManyField("self", blank=True)
    notes = GenericRelation(Note)

    class Meta:
        ordering = ["id"]
        get_latest_by = "created"
        db_table_comment = "what is sold"
        constraints = [
            models.CheckConstraint(condition=Q(price__gte=0), name="price_not_negative"),
            models.CheckConstraint(condition=Q(size__in=["S", "M", "L"]), name="size_known"),
            models.UniqueConstraint(fields=["name", "size"], name="name_and_size"),
            models.UniqueConstraint(Lower("slug"), F("category"), name="slug_folded"),
        ]
        indexes = [
            models.Index(fields=["-price", "name"], name="by_price"),
            models.Index(Upper("name"), Length("description").desc(), name="by_upper_name"),
        ]
        permissions = [("discount", "Can give discounts")]

    def __str__(self):
        return self.name


class Book(Product):
    isbn = models.CharField(max_length=13, unique=True)
    pages = models.PositiveIntegerField(null=True, blank=True)


class Customer(models.Model):
    user = models.OneToOneField(User, models.CASCADE)
    born = models.DateField(null=True, blank=True)
    language = models.CharField(max_length=5, default="en", db_collation="utf8mb4_bin")
    friends = models.ManyToManyField("self", through="Friendship", symmetrical=False)

    def __str__(self):
        return self.user.username


class Friendship(models.Model):
    one = models.ForeignKey(Customer, models.CASCADE, related_name="out")
    other = models.ForeignKey(Customer, models.CASCADE, related_name="into")
    since = models.DateField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["one", "other"], name="once_a_friend")]


class Order(Stamped):
    class State(models.IntegerChoices):
        OPEN = 1
        PAID = 2
        SENT = 3

    customer = models.ForeignKey(Customer, models.CASCADE, related_name="orders")
    state = models.SmallIntegerField(choices=State, default=State.OPEN)
    placed = models.DateTimeField()

    class Meta:
        ordering = ["-placed"]


class PaidManager(models.Manager):
    def get_queryset(self):
        return super().get_queryset().filter(state=Order.State.PAID)


class PaidOrder(Order):
    objects = PaidManager()

    class Meta:
        proxy = True


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, models.RESTRICT, related_name="lines")
    amount = models.PositiveIntegerField(default=1)
    price = models.DecimalField(max_digits=12, decimal_places=2)

    class Meta:
        unique_together = [("order", "product")]


class Shelf(models.Model):
    """What the migrations 0002 to 0004 made of a model named Rack, step by step."""

    place = models.CharField(max_length=80, default="", db_comment="where it stands")
    capacity = models.BigIntegerField(default=10)
    products = models.ManyToManyField(Product, blank=True, db_table="shop_shelved")
    keeper = models.ForeignKey(User, models.SET_NULL, null=True, blank=True)
    floor = models.SmallIntegerField(null=True)
    opened = models.DateTimeField(null=True)

    class Meta:
        db_table = "shop_shelves"
        indexes = [models.Index(fields=["floor", "place"], name="shelf_place")]
        constraints = [
            models.UniqueConstraint(fields=["place", "floor"], name="one_shelf_a_place"),
            models.CheckConstraint(condition=Q(capacity__gt=0), name="shelf_holds_something"),
        ]
