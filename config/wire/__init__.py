"""What crosses between Trellis and its clients, as one description: JSON Schema out of the code.

`manage.py write_wire` writes three files from it: the web app's types, docs/protocol.md for people, and
docs/protocol.json for programs.
"""
