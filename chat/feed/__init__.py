"""One turn as a stream of server-sent events, for programs: told from the rows, so it resumes anywhere."""
