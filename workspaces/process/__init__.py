"""What a process needs besides its work: metrics, traces, schedules, an end in order."""
