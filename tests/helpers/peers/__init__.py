"""Random calls of every public function against its twin in numpy: `make peers`.

``PYTHONPATH=tests python -m helpers.peers [--minutes 5] [--seed N] [--only sort,histogram] [--replay SEED:INDEX]
[--dry] [--json FILE]``

- `calls`: a call as data, which is made on both sides, written as Python, and read again
- `draws`: random datatypes, shapes, values, containers, spellings
- `chains`: the call of a seed and an index; a few in turn are of one function, so that they share its kernels
- `twins`: of each function its twin, how its arguments are drawn, how results are compared
- `references`: of functions that numpy does not have, and exact values of sums
- `judge`: what is a finding
- `known`: the documented differences; what they cover is counted
- `stored`: calls that found something once; they are replayed first
- `dry`: calls without kernels
- `smaller`: makes the call of a finding smaller
- `work`: the processes that make the calls
"""
