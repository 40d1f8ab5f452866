"""Lists of rows: page by page, and with filters that are saved under a name."""
