"""The end of an alert is told also where its rule was deleted."""

import django.db.models.deletion
from django.db import migrations, models

import workspaces.secrets


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0009_go_on_with_erasures"),
    ]

    operations = [
        migrations.AddField(
            model_name="alertdelivery",
            name="secret",
            field=workspaces.secrets.EncryptedTextField(blank=True, default=None, null=True),
        ),
        migrations.AlterField(
            model_name="alertdelivery",
            name="rule",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="audit.alertrule",
            ),
        ),
    ]
