from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import workspaces.secrets
from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0022_plan_checks"),
        ("sessions", "0001_initial"),
        ("workspaces", "0005_join_links_sessions_and_requests"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PushDevice",
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
                ("name", models.CharField(editable=False, max_length=100, verbose_name="device")),
                (
                    "endpoint",
                    workspaces.secrets.EncryptedTextField(
                        blank=True,
                        default=None,
                        help_text="Whoever knows it can write there.",
                        null=True,
                        verbose_name="address at the push service",
                    ),
                ),
                ("endpoint_digest", models.CharField(editable=False, max_length=64)),
                (
                    "p256dh",
                    models.CharField(editable=False, max_length=100, verbose_name="public key"),
                ),
                (
                    "auth",
                    workspaces.secrets.EncryptedTextField(
                        blank=True, default=None, null=True, verbose_name="secret"
                    ),
                ),
                (
                    "key_id",
                    models.CharField(
                        editable=False,
                        help_text="Of our keys, the one it takes messages from.",
                        max_length=32,
                    ),
                ),
                (
                    "shows_titles",
                    models.BooleanField(default=False, verbose_name="show titles of chats"),
                ),
                (
                    "told_until",
                    models.DateTimeField(
                        editable=False,
                        help_text="What began to wait, or ended, before that was told.",
                    ),
                ),
                ("last_told_at", models.DateTimeField(editable=False, null=True)),
                ("last_error", models.CharField(blank=True, editable=False, max_length=200)),
                ("tested_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="PushMessage",
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
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("given_up", "Given Up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField()),
                ("delivered_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=200)),
                (
                    "since",
                    models.DateTimeField(
                        help_text="It tells what began to wait, or ended, after that …"
                    ),
                ),
                ("until", models.DateTimeField(help_text="… and no later than that.")),
            ],
            options={
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddField(
            model_name="conversation",
            name="unseen_answer_at",
            field=models.DateTimeField(
                editable=False,
                help_text="When the newest answer ended, until its owner has seen it on any device.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="reminderchoice",
            name="answers_after",
            field=models.PositiveSmallIntegerField(
                choices=[
                    (0, "Never"),
                    (5, "After 5 minutes"),
                    (15, "After 15 minutes"),
                    (60, "After an hour"),
                    (240, "After 4 hours"),
                    (1440, "After a day"),
                ],
                db_default=0,
                default=0,
                verbose_name="mail me finished answers",
            ),
        ),
        migrations.AddField(
            model_name="reminderchoice",
            name="answers_told_until",
            field=models.DateTimeField(
                editable=False, help_text="Answers that ended before that were mailed.", null=True
            ),
        ),
        migrations.AddField(
            model_name="remindermail",
            name="about",
            field=models.CharField(
                choices=[("waiting", "What waits"), ("answers", "Finished answers")],
                db_default="waiting",
                default="waiting",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="reminderchoice",
            name="mail_after",
            field=models.PositiveSmallIntegerField(
                choices=[
                    (0, "Never"),
                    (5, "After 5 minutes"),
                    (15, "After 15 minutes"),
                    (60, "After an hour"),
                    (240, "After 4 hours"),
                    (1440, "After a day"),
                ],
                default=60,
                verbose_name="mail me what waits for me",
            ),
        ),
        migrations.AlterField(
            model_name="remindermail",
            name="since",
            field=models.DateTimeField(
                help_text="It lists what began to wait, or ended, after that …"
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("unseen_answer_at__isnull", False)),
                fields=["unseen_answer_at"],
                name="conversation_unseen",
            ),
        ),
        migrations.AddField(
            model_name="pushdevice",
            name="owner",
            field=models.ForeignKey(
                editable=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="pushdevice",
            name="session",
            field=models.ForeignKey(
                editable=False,
                help_text="None: a program added it.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="sessions.session",
            ),
        ),
        migrations.AddField(
            model_name="pushdevice",
            name="workspace",
            field=models.ForeignKey(
                editable=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="workspaces.workspace",
            ),
        ),
        migrations.AddField(
            model_name="pushmessage",
            name="device",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="chat.pushdevice"
            ),
        ),
        migrations.AddField(
            model_name="pushmessage",
            name="workspace",
            field=models.ForeignKey(
                editable=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="workspaces.workspace",
            ),
        ),
        migrations.AddConstraint(
            model_name="pushdevice",
            constraint=models.UniqueConstraint(
                fields=("workspace", "endpoint_digest"), name="push_device_once"
            ),
        ),
        migrations.AddIndex(
            model_name="pushmessage",
            index=models.Index(fields=["status", "next_attempt_at"], name="push_due"),
        ),
        run_sql_file(SQL, "push_tenant_references"),
    ]
