"""Who is in a workspace: invitations, memberships, profiles, tokens, sessions."""
