"""Many cases in a run: axes, suites, budgets, isolation, resuming; and tuning, which measures many shapes."""
