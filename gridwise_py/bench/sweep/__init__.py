"""Runs of many cases: axes, suites, time budgets, isolation, resuming; also tuning."""
