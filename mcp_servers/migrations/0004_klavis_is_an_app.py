from django.db import migrations


class Migration(migrations.Migration):
    """The three tables stay as they are; their models are those of the app `klavis` from here on."""

    dependencies = [
        ("mcp_servers", "0003_register_transports"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name="KlavisRemoval"),
                migrations.DeleteModel(name="KlavisInstance"),
                migrations.DeleteModel(name="KlavisAccount"),
            ]
        )
    ]
