"""Another table name, a column that changes from text to time with its rows, and statements of SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("shop", "0003_shelf")]
    operations = [
        migrations.RunSQL(
            [("UPDATE shop_shelf SET opened = %s WHERE id %% 2 = 0", ["2024-05-06 07:08:09.123456"])],
            migrations.RunSQL.noop,
        ),
        migrations.AlterField("shelf", "opened", models.DateTimeField(null=True)),
        migrations.AlterModelTable("shelf", "shop_shelves"),
        migrations.AlterField(
            "shelf", "products", models.ManyToManyField("shop.product", blank=True, db_table="shop_shelved")
        ),
        migrations.RunSQL(
            "ALTER TABLE shop_shelves ADD COLUMN extra INT NOT NULL DEFAULT 7, ADD KEY extra_key (extra)",
            "ALTER TABLE shop_shelves DROP KEY extra_key, DROP COLUMN extra",
        ),
        migrations.RunSQL(
            "ALTER TABLE shop_shelves DROP COLUMN extra",
            "ALTER TABLE shop_shelves ADD COLUMN extra INT, ADD KEY extra_key (extra)",
        ),
    ]
