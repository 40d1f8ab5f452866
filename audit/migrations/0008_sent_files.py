"""Times of schedules in a time zone, what was sent, and which sent file a sign-off is of."""

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0007_filter_alerts"),
        ("workspaces", "0013_let_mcp_clients_in"),
    ]

    operations = [
        migrations.CreateModel(
            name="SentFile",
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
                ("name", models.CharField(max_length=80)),
                ("query", models.TextField(blank=True)),
                ("format", models.CharField(max_length=10)),
                ("time_zone", models.CharField(max_length=64)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                (
                    "is_trial",
                    models.BooleanField(default=False, help_text="For whoever asked for it alone."),
                ),
                (
                    "asked_by",
                    models.CharField(
                        blank=True,
                        help_text="Who had it made by hand; empty: its time came.",
                        max_length=254,
                    ),
                ),
                (
                    "due_at",
                    models.DateTimeField(help_text="Empty: it was made by hand.", null=True),
                ),
                (
                    "sent_to",
                    models.JSONField(blank=True, default=list, help_text="E-mail addresses."),
                ),
                ("stored_as", models.CharField(blank=True, max_length=500)),
                ("entries", models.PositiveBigIntegerField(null=True)),
                ("calls", models.PositiveBigIntegerField(null=True)),
                ("size", models.PositiveBigIntegerField(help_text="In bytes.", null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("sent", "Sent"), ("failed", "Failed")],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("fault", models.CharField(blank=True, max_length=500)),
                ("sent_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "sent file",
                "ordering": ["-created_at", "-id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddField(
            model_name="reportschedule",
            name="covers",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "The day, week or month before"),
                    ("day", "The day before"),
                    ("week", "The 7 days before"),
                    ("month", "The 30 days before"),
                ],
                db_default="",
                default="",
                max_length=5,
            ),
        ),
        migrations.AddField(
            model_name="reportschedule",
            name="hour",
            field=models.PositiveSmallIntegerField(
                db_default=6, default=6, validators=[django.core.validators.MaxValueValidator(23)]
            ),
        ),
        migrations.AddField(
            model_name="reportschedule",
            name="time_zone",
            field=models.CharField(
                db_default="UTC",
                default="UTC",
                help_text="Where it is that hour, and where days begin.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="signoff",
            name="sent_file_id",
            field=models.UUIDField(
                help_text="The sent file whose time and filters these are.", null=True
            ),
        ),
        migrations.AddConstraint(
            model_name="signoff",
            constraint=models.UniqueConstraint(
                fields=("sent_file_id", "signed_by_id"), name="audit_sign_off_file_once"
            ),
        ),
        migrations.AddField(
            model_name="sentfile",
            name="schedule",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="sent_files",
                to="audit.reportschedule",
            ),
        ),
        migrations.AddField(
            model_name="sentfile",
            name="workspace",
            field=models.ForeignKey(
                editable=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="workspaces.workspace",
            ),
        ),
        migrations.AddIndex(
            model_name="sentfile",
            index=models.Index(
                fields=["schedule", "-created_at", "-id"], name="audit_sent_of_schedule"
            ),
        ),
        migrations.AddIndex(
            model_name="sentfile",
            index=models.Index(
                fields=["workspace", "-created_at", "-id"], name="audit_sent_by_time"
            ),
        ),
    ]
