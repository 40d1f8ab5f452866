"""Refusals because of a spending limit, and alerts for one."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0005_ip_address_label"),
    ]

    operations = [
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
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="threshold",
            field=models.PositiveIntegerField(
                help_text="From how many on; for an error rate or a spending limit, from how many per cent.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(100000),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="refused_by",
            field=models.CharField(
                blank=True,
                choices=[
                    ("not_found", "not_found"),
                    ("disabled", "disabled"),
                    ("quarantine", "quarantine"),
                    ("policy", "policy"),
                    ("approval", "approval"),
                    ("arguments", "arguments"),
                    ("quota", "quota"),
                    ("breaker", "breaker"),
                    ("busy", "busy"),
                    ("permission", "permission"),
                    ("audit", "audit"),
                    ("spending_limit", "spending_limit"),
                ],
                max_length=20,
            ),
        ),
    ]
