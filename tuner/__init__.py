"""The search for fast schedules: what to measure next, and what is best of what was measured."""
