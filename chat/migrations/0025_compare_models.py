from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0024_walk_paths_and_find_words_by_index")]

    operations = [
        migrations.RemoveConstraint(model_name="turn", name="turn_one_active"),
        migrations.AddField(
            model_name="conversation",
            name="comparison",
            field=models.UUIDField(
                editable=False,
                help_text="Whose answers stand side by side until the person chooses one.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="queuedmessage",
            name="compare",
            field=models.JSONField(
                help_text="The models that answer side by side: id of its row, provider, name.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="comparison",
            field=models.UUIDField(
                help_text="Shared by the answers to one question that stand side by side.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="place",
            field=models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                help_text="Among answers that may be written at the same time.",
            ),
        ),
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        ["queued", "running", "waiting_for_approval", "waiting_for_input"],
                    )
                ),
                fields=("conversation", "place"),
                name="turn_one_active",
            ),
        ),
    ]
