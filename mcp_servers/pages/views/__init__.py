"""The pages on servers: the list, one server's settings, offers, trace and tool tester, and lists to import."""
