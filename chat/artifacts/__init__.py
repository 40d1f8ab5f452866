"""Artifacts: named, versioned files of a conversation, made by people and by buds.

A version's content is written to the storage first, under a name that nobody else uses, and its row after; so a row
always has its content, and content without a row is swept. Nothing here believes what a file says it is: its type is
found in the content (`kinds`), its name is made harmless (`names`), and it is given away only by `serving`.
"""
