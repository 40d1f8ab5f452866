"""Filters of alert rules, and rules that count the entries of one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0006_spending_limits"),
    ]

    operations = [
        migrations.AddField(
            model_name="alertrule",
            name="query",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="In the log's filter language, beside server and tool.",
                verbose_name="filter",
            ),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="condition",
            field=models.CharField(
                choices=[
                    ("connection", "Connection failures"),
                    ("timeout", "Timeouts"),
                    ("error_rate", "Error rate"),
                    ("refusal", "Refused calls"),
                    ("quota", "Calls over a quota"),
                    ("tampering", "Findings in the log itself"),
                    ("approval", "Approvals waiting"),
                    ("spending", "Spending limit used"),
                    ("entries", "Entries that match a filter"),
                ],
                max_length=12,
            ),
        ),
    ]
