"""Give every account the row of its address, and note whether a mail to it was answered."""

from django.db import migrations, models


def add_rows(apps, schema_editor):
    users = apps.get_model("workspaces", "User").objects
    rows = apps.get_model("account", "EmailAddress").objects
    for pk, email in users.exclude(email="").values_list("pk", "email").iterator():
        mine = rows.filter(user_id=pk)
        if mine.filter(email=email.lower(), primary=True).exists():
            continue
        mine.filter(primary=True).update(primary=False)
        rows.update_or_create(user_id=pk, email=email.lower(), defaults={"primary": True})
    confirmed = rows.filter(primary=True, verified=True).values("user_id")
    users.filter(pk__in=confirmed).update(is_address_confirmed=True)


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0002_let_reading_tools_reach_outside"),
        ("account", "0009_emailaddress_unique_primary_email"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="is_address_confirmed",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="A mail to the address was answered. Follows the rows of `EmailAddress`.",
                verbose_name="address confirmed",
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="is_link_shown",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="The inviter saw the link, so whoever uses it has not shown that the address is theirs.",
            ),
        ),
        migrations.RunPython(add_rows, migrations.RunPython.noop),
    ]
