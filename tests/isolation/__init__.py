"""Every door of the product, walked as two tenants.

The walker enumerates doors by itself: routes, admin classes, socket commands, tasks, management commands. A door that
it has no sample for fails the test, so that what is added tomorrow is walked tomorrow.
"""
