"""Servers as rows, and all that is known and decided of them.

`services` is what people do with servers, one function for each. `discovery` keeps what servers offer, `scopes` says
whose server is used where, `catalogue` has the well-known ones, `consent` decides which calls need a person's word,
`elicitation` puts servers' questions to people, `trace` keeps what went over the line, and `specs` makes of a row what
the client needs to connect.
"""
