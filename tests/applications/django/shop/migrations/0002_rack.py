"""A model with rows, which the next migrations rebuild."""

from django.db import migrations, models


def fill(apps, schema_editor):
    rack = apps.get_model("shop", "Rack")
    rack.objects.bulk_create(rack(title=f"rack {n}", capacity=n, level=n % 3) for n in range(1, 201))


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Rack",
            fields=[
                ("id", models.AutoField(primary_key=True)),
                ("title", models.CharField(max_length=40)),
                ("capacity", models.SmallIntegerField()),
                ("level", models.IntegerField(null=True)),
                ("obsolete", models.TextField(default="")),
            ],
            options={
                "unique_together": {("title", "level")},
                "indexes": [models.Index(fields=["capacity"], name="rack_cap")],
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
