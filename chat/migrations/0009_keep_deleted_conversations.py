from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0008_choose_models"),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="deleted_at",
            field=models.DateTimeField(
                db_index=True,
                editable=False,
                help_text="It can be brought back for some days, and is then erased.",
                null=True,
            ),
        ),
    ]
