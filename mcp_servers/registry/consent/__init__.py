"""Whether a call may run: the policy, what the call really does, approvals, and what a person allowed for good."""
