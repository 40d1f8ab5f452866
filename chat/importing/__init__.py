"""Chats as other programs export them, and as Trellis does: read from a file, and checked before anything is made."""
