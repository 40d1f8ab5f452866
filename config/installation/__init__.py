"""What the platform's owner reads of the installation beside the doctor's report: versions, storage, background jobs.

Each part has a module that looks; the pages and the REST interface show what it found.
"""
