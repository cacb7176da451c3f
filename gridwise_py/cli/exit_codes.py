"""Exit codes of the command line; docs/reference/environment.md has the table."""

REGRESSION = 1
NOT_COMPARABLE = 3
WRONG_RESULT = 4
BAD_INPUT = 2
NO_ADAPTER = 5
INCOMPLETE = 6
UNDECIDED = 7
#: What `git bisect run` takes for "this commit cannot be tested".
SKIP = 125
#: As a shell reports a program ended by a signal: 128 plus its number.
INTERRUPTED = 130
TERMINATED = 143
NO_READER = 141
