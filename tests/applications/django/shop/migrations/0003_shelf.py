"""Renames, other types, another key's type, columns that come and go, foreign keys, indexes and constraints."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("shop", "0002_rack"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        migrations.AlterUniqueTogether("rack", set()),
        migrations.RenameModel("Rack", "Shelf"),
        migrations.RenameField("shelf", "title", "place"),
        migrations.RenameField("shelf", "level", "floor"),
        migrations.AlterField("shelf", "floor", models.SmallIntegerField(null=True)),
        migrations.AlterField(
            "shelf", "place", models.CharField(max_length=80, default="", db_comment="where it stands")
        ),
        migrations.AlterField("shelf", "capacity", models.BigIntegerField(default=10)),
        migrations.AlterField(
            "shelf", "id", models.BigAutoField(primary_key=True, auto_created=True, serialize=False, verbose_name="ID")
        ),
        migrations.RemoveField("shelf", "obsolete"),
        migrations.RenameIndex("shelf", new_name="shelf_capacity", old_name="rack_cap"),
        migrations.RemoveIndex("shelf", "shelf_capacity"),
        migrations.AddField(
            "shelf", "keeper", models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
        ),
        migrations.AddField("shelf", "products", models.ManyToManyField("shop.product", blank=True)),
        migrations.AddField("shelf", "opened", models.CharField(max_length=40, null=True)),
        migrations.AddIndex("shelf", models.Index(fields=["floor", "place"], name="shelf_place")),
        migrations.AddConstraint("shelf", models.UniqueConstraint(fields=["place", "floor"], name="one_shelf_a_place")),
        migrations.AddConstraint(
            "shelf", models.CheckConstraint(condition=Q(capacity__gt=0), name="shelf_holds_something")
        ),
    ]
