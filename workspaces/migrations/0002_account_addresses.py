"""Give every account the row of the address that it signs in with."""

from django.db import migrations


def add_rows(apps, schema_editor):
    users = apps.get_model("workspaces", "User").objects
    rows = apps.get_model("account", "EmailAddress").objects
    for pk, email in users.exclude(email="").values_list("pk", "email").iterator():
        mine = rows.filter(user_id=pk)
        if mine.filter(email=email.lower(), primary=True).exists():
            continue
        mine.filter(primary=True).update(primary=False)
        rows.update_or_create(user_id=pk, email=email.lower(), defaults={"primary": True})


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0001_initial"),
        ("account", "0009_emailaddress_unique_primary_email"),
    ]

    operations = [migrations.RunPython(add_rows, migrations.RunPython.noop)]
