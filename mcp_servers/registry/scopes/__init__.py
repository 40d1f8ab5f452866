"""Where servers come from: the platform's file, the workspace, one person; and which of them a conversation may use."""
