import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0011_shortcuts_of_people"),
    ]

    operations = [
        migrations.AlterField(
            model_name="idempotentrequest",
            name="workspace",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="workspaces.workspace",
            ),
        ),
        migrations.AddConstraint(
            model_name="idempotentrequest",
            constraint=models.UniqueConstraint(
                condition=models.Q(("workspace", None)),
                fields=("user", "key"),
                name="idempotent_platform_request_once",
            ),
        ),
    ]
