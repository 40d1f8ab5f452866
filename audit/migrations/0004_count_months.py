"""Months beside days and hours. The next round of counting makes them from days, as it does after older processes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0003_find_the_entries_of_a_call"),
    ]

    operations = [
        migrations.AddField(
            model_name="rollupcursor",
            name="months_seq",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="Up to where months are counted. If it is not `seq`, they are made anew.",
            ),
        ),
        migrations.AlterField(
            model_name="audithistogram",
            name="grain",
            field=models.CharField(
                choices=[("h", "hour"), ("d", "day"), ("m", "month")], max_length=1
            ),
        ),
        migrations.AlterField(
            model_name="auditrollup",
            name="grain",
            field=models.CharField(
                choices=[("h", "hour"), ("d", "day"), ("m", "month")], max_length=1
            ),
        ),
    ]
