"""Spending limits of a month, and the sums that are held against them."""

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0039_data_copies"),
        ("workspaces", "0011_shortcuts_of_people"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="modelprovider",
            name="most_cost_a_month",
            field=models.DecimalField(
                blank=True,
                decimal_places=6,
                editable=False,
                max_digits=14,
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(0),
                    django.core.validators.MaxValueValidator(99999999),
                ],
            ),
        ),
        migrations.AddField(
            model_name="modelprovider",
            name="most_tokens_a_month",
            field=models.BigIntegerField(
                blank=True,
                editable=False,
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(0),
                    django.core.validators.MaxValueValidator(1000000000000000),
                ],
            ),
        ),
        migrations.CreateModel(
            name="MemberSpendingLimit",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "cost",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        max_digits=14,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(99999999),
                        ],
                    ),
                ),
                (
                    "tokens",
                    models.BigIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000000000000),
                        ],
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "spending limit of a member",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "person"), name="member_limit_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="MonthlySpending",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("month", models.BigIntegerField(help_text="As 202611.")),
                (
                    "subject",
                    models.UUIDField(
                        help_text="Whose: the workspace, the person or the shared provider."
                    ),
                ),
                ("requests", models.BigIntegerField(default=0)),
                ("tokens", models.BigIntegerField(default=0)),
                (
                    "estimated_tokens",
                    models.BigIntegerField(
                        default=0, help_text="Of them: those that no provider has told."
                    ),
                ),
                (
                    "unpriced_tokens",
                    models.BigIntegerField(
                        default=0,
                        help_text="Of them: those whose price is not known, so the cost leaves them out.",
                    ),
                ),
                ("cost", models.DecimalField(decimal_places=6, default=0, max_digits=18)),
                (
                    "told_percent",
                    models.PositiveSmallIntegerField(
                        default=0,
                        help_text="Of its limit: what people were told last, in this month.",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "shared",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chat.sharedprovider",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(
                        condition=models.Q(("person__isnull", False)),
                        fields=["workspace", "month", "-cost", "-tokens", "id"],
                        name="spending_of_people",
                    ),
                    models.Index(
                        condition=models.Q(("shared__isnull", False)),
                        fields=["shared", "month"],
                        name="spending_of_shared",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "month", "subject"), name="monthly_spending_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="SpendingPolicy",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "cost",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        max_digits=14,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(99999999),
                        ],
                    ),
                ),
                (
                    "tokens",
                    models.BigIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000000000000),
                        ],
                    ),
                ),
                (
                    "member_cost",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        max_digits=14,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(99999999),
                        ],
                    ),
                ),
                (
                    "member_tokens",
                    models.BigIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000000000000),
                        ],
                    ),
                ),
                (
                    "warn_percent",
                    models.PositiveSmallIntegerField(
                        db_default=80,
                        default=80,
                        help_text="Of a limit; whoever it concerns is told then.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100),
                        ],
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True, help_text="In which months begin. Empty: UTC.", max_length=64
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "spending limits",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(fields=("workspace",), name="spending_policy_once")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
    ]
