# mdoc.awk - makes a manual page of a tutorial in Markdown:
#
#     awk -v version=VERSION -f mdoc.awk tutorial.md >packstream-tutorial.7
#
# It knows what docs/tutorial.md has: a first line that names page and date,
# headings, paragraphs, `code` in a line, and fenced blocks.
#
# SPDX-License-Identifier: MIT

# Characters that troff would take for something else.
function plain(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/~/, "\\(ti", text)
    gsub(/'/, "\\(aq", text)
    return text
}

# A line of a paragraph, with the code of it in bold.
function prose(text,    parts, n, i, out) {
    n = split(text, parts, "`")
    for (i = 1; i <= n; i++)
        out = out (i % 2 ? parts[i] : "\\fB" plain(parts[i]) "\\fR")
    # mdoc wants sentences to begin a line.
    gsub(/\. /, ".\n", out)
    return out ~ /^[.']/ ? "\\&" out : out
}

NR == 1 {
    name = $2
    sub(/\(.*/, "", name)
    date = $0
    sub(/^[^,]*, /, "", date)
    sub(/ -->$/, "", date)
    next
}

!fenced && /^# / {
    printf ".\\\" Made of docs/tutorial.md, which is what to change.\n"
    printf ".Dd %s\n.Dt %s 7\n.Os packstream %s\n", date, toupper(name), version
    printf ".Sh NAME\n.Nm %s\n.Nd %s\n.Sh DESCRIPTION\n", name, \
        tolower(substr($0, 3, 1)) substr($0, 4)
    next
}

!fenced && /^## / {
    printf ".Sh %s\n", substr($0, 4)
    gap = 0
    started = 0
    next
}

/^```/ {
    fenced = !fenced
    # A block for a file begins with its name.
    if (fenced && $2 != "")
        printf ".Pp\n.Pa %s :\n", $2
    print fenced ? ".Bd -literal -offset indent" : ".Ed"
    gap = 0
    started = !fenced
    next
}

fenced {
    line = plain($0)
    gsub(/`/, "\\(ga", line)
    print line ~ /^[.']/ ? "\\&" line : line
    next
}

/^$/ {
    gap = started
    next
}

{
    if (gap)
        print ".Pp"
    gap = 0
    started = 1
    print prose($0)
}
