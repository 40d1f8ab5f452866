from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0044_find_calls_and_files_by_owner")]

    operations = [
        migrations.AddField(
            model_name="checkrun",
            name="checked",
            field=models.CharField(db_default="", default="", editable=False, max_length=64),
        ),
        migrations.AlterField(
            model_name="checkplan",
            name="before_saving",
            field=models.BooleanField(
                default=False,
                help_text="A change is saved after they have passed with it, or if somebody insists.",
                verbose_name="before saving",
            ),
        ),
    ]
