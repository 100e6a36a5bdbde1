# find.awk - prints the test that $T names, for `make t`.
#
#     printf '%s\n' TEST... | T=policy-auto awk -f find.awk
#
# $T is the path of a test, or its last components, with or without -t, -t.c or
# .bats. A C test comes before a bats file of the same name. $F, which selects
# tests of a bats file, is refused for a C test.
#
# SPDX-License-Identifier: MIT

function fail(why) {
    print "t: " why | "cat >&2"
    close("cat >&2")
    exit 64
}

# True if END is PATH, or its last components.
function ends_with(path, end) {
    path = "/" path
    end = "/" end
    return substr(path, length(path) - length(end) + 1) == end
}

# The name without its folder and its suffix.
function short(name) {
    sub(/.*\//, "", name)
    sub(/(-t|\.bats)$/, "", name)
    return name
}

function least(a, b) {
    return a < b ? a : b
}

# The number of characters to insert, delete or replace to turn A into B.
function distance(a, b,    i, j, row, diagonal, above) {
    for (j = 0; j <= length(b); j++)
        row[j] = j
    for (i = 1; i <= length(a); i++) {
        diagonal = row[0]
        row[0] = i
        for (j = 1; j <= length(b); j++) {
            above = row[j]
            diagonal += substr(a, i, 1) != substr(b, j, 1)
            row[j] = least(diagonal, least(above, row[j - 1]) + 1)
            diagonal = above
        }
    }
    return row[length(b)]
}

# The first tests whose names contain this one, or are a few typos away.
function similar(name,    i, n, names, other, seen) {
    for (i = 1; i <= NR && n < 8; i++) {
        other = short(test[i])
        if (!seen[other]++ && (index(other, name) ||
                distance(other, name) <= length(name) / 3))
            names = names (n++ ? ", " : "; similar: ") other
    }
    return names
}

{
    test[NR] = $0
}

END {
    name = ENVIRON["T"]
    if (NR == 0)
        fail("configure found neither cmocka nor bats, so there are no tests")
    if (name == "")
        fail("missing T=TEST, such as T=policy-auto, " \
            "or T=packstream.bats F=overlong")
    sub(/\.c$/, "", name)
    split(",-t,.bats", suffix, ",")
    for (k = 1; k <= 3 && !n; k++)
        for (i = 1; i <= NR; i++)
            if (ends_with(test[i], name suffix[k]))
                found[++n] = test[i]
    if (n == 0)
        fail("no test '" name "'" similar(short(name)))
    if (n > 1)
        fail("'" name "' is ambiguous: " found[1] ", " found[2])
    if (ENVIRON["F"] != "" && found[1] !~ /\.bats$/)
        fail("F= selects tests of a bats file; " found[1] " is a C test")
    print found[1]
}
