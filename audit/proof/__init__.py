"""What proves the log: the form in which an entry is sealed, marks, signatures, and the verifier program."""
