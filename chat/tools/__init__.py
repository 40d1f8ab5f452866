"""The tools that a conversation may use: where they come from, their names and schemas."""
