"""Statistics of times: series, intervals, when to stop, verdicts. No GPU."""
