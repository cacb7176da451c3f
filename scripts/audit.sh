#!/bin/sh
# Whether a vulnerability is known of a package in requirements-ci.lock. Usage: scripts/audit.sh [PATH-OF-PIP-AUDIT]
#
# Exit: 1 if one is known. Where pip-audit or its database cannot be reached within a minute, it says so, and the exit
# code is 0: that is no fault of what is built.
set -u
cd "$(dirname "$0")/.."
said=$(timeout "${AUDIT_S:-60}" "${1:-pip-audit}" -r requirements-ci.lock --no-deps --disable-pip --format json \
    --progress-spinner off 2>&1)
count() { printf '%s' "$said" | grep -o "\"$1\":" | wc -l; }
asked=$(count name)
unknown=$(count skip_reason)
if [ "$(count fix_versions)" -gt 0 ]; then
    printf '%s\naudit: vulnerabilities are known.\n' "$said"
    exit 1
elif [ "$asked" -eq 0 ]; then
    echo "audit: SKIPPED: no answer from pip-audit ($(printf '%s' "$said" | tail -n 1 | cut -c 1-200)). NOTHING WAS AUDITED."
elif [ "$unknown" -eq "$asked" ]; then
    echo "audit: SKIPPED: pip-audit's database knows none of the packages. NOTHING WAS AUDITED."
else
    echo "audit: no vulnerability is known of $((asked - unknown)) packages, $unknown not found there"
fi
