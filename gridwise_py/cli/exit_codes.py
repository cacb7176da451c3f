"""Exit codes of the command line; docs/environment.md has the table."""

REGRESSION = 1
NOT_COMPARABLE = 3
WRONG_RESULT = 4
BAD_INPUT = 2
NO_ADAPTER = 5
