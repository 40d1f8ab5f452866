"""All tables of the app at once, in a new database. Others go through the migrations one by one."""

from django.conf import settings
from django.db import migrations

from workspaces.database.migration_operations import TablesAtOnce, operations_of

FIRST = (
    "0001_buds_conversations_turns",
    "0002_tenant_references",
    "0003_inputs_and_attachments",
    "0004_attachment_tenant",
    "0005_branches_queue_artifacts_webhooks",
    "0006_tenant_references_and_leaves",
    "0007_artifact_names_and_calls",
)
"""What `0001_initial` stands for in the oldest databases. There its tables stay as they are."""
REST = (
    "0001_initial",
    "0002_remember_what_client_ids_stand_for",
    "0003_keep_what_was_read_from_outside",
    "0004_share_the_columns_of_the_outbox",
    "0005_read_files_for_models",
    "0006_find_words_in_messages",
    "0007_buds_take_all_tools",
    "0008_choose_models",
    "0009_keep_deleted_conversations",
    "0010_rate_and_reword_answers",
    "0011_sort_conversations_into_folders",
    "0012_keep_drafts",
    "0013_version_and_share_buds",
    "0014_know_files",
    "0015_remind_by_mail",
    "0016_keep_words_of_passages",
    "0017_stand_in_for_providers",
    "0018_limit_providers",
    "0019_pins",
    "0020_check_buds",
    "0021_ask_another_bud",
    "0022_plan_checks",
    "0023_tell_of_answers",
    "0024_walk_paths_and_find_words_by_index",
    "0025_compare_models",
    "0026_search_knowledge_by_meaning",
    "0027_limit_the_platforms_provider",
    "0028_count_what_checks_use",
    "0029_prepare_knowledge_with_the_platforms_provider",
    "0030_search_in_some_chats",
    "0031_correct_abilities_of_models",
)


class Migration(migrations.Migration):
    initial = True
    replaces = [("chat", name) for name in (*FIRST, *REST)]

    dependencies = [
        ("sessions", "0001_initial"),
        ("workspaces", "0006_keep_the_theme_of_people"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [TablesAtOnce(operations_of("chat", REST))]
