#!/usr/bin/awk -f
# Sums what the test programs of a meson test log report: Check's summary lines, and "N passed, N failed" lines of programs
# that count for themselves.  A program that reported neither (it crashed, or was stopped) counts as one failure.
# Ends with "N passed, N failed"; the exit status says whether anything failed.

function close_program() {
    if (open && !counted) {
        if (result == "exit status 0") { passed++ } else { failed++ }
    } else if (open && result != "exit status 0" && program_failed == 0) { failed++ }
}
/^=+ [0-9]+\/[0-9]+ =+$/ { close_program(); open = 1; counted = 0; program_failed = 0; result = "" }
/^result: +/ { result = $0; sub(/^result: +/, "", result) }
/^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+$/ {
    n = $3 + 0; bad = ($5 + 0) + ($7 + 0)
    passed += n - bad; failed += bad; program_failed += bad; counted = 1
}
/^[0-9]+ passed, [0-9]+ failed/ { passed += $1; failed += $3; program_failed += $3; counted = 1 }
END {
    close_program()
    printf "%d passed, %d failed\n", passed, failed
    exit (failed > 0 || passed == 0)
}
