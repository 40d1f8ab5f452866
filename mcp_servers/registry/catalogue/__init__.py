"""The catalogue of servers that people install with one click: the platform's own list, and whoever adds to it.

`values` holds the seam: what an entry is, and what a source of entries does. `sources` knows the sources, `listing`
puts their entries on the page, and `services` installs, uninstalls and says who may.
"""
