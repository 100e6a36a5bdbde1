# completion.awk - writes command line completions for bash, zsh and fish.
#
#   { packcat --options-table; packstat --options-table; ... } |
#       awk -v dir=completion -f completion.awk
#
# reads the option tables that programs print (src/cli/options.c) and writes
# dir/bash/packcat, dir/zsh/_packcat, dir/fish/packcat.fish and so on.
#
# Values are completed with the option's words, or with files or folders if the
# metavar is FILE or DIR; other values are not completed.  LIST means
# comma-separated words.  A metavar in brackets is an optional value, which must
# follow "=".
#
# SPDX-License-Identifier: MIT

BEGIN { FS = "\t" }

NF == 2 {
    finish()
    start($1, $2)
    next
}

{
    letter = $1; name = $2; metavar = $3; words = $4; help = $5
    optional = sub(/^\[/, "", metavar) && sub(/\]$/, "", metavar)
    kind = "nothing"
    if (metavar == "")
        kind = "flag"
    else if (words != "")
        kind = metavar == "LIST" ? "list" : "words"
    else if (metavar == "FILE" || metavar == "DIR")
        kind = metavar
    add_bash()
    add_zsh()
    add_fish()
}

END { finish() }

function start(program_name, usage)
{
    program = program_name
    operand = usage ~ /WEIGHT=FILE/ ? "{ compset -P \"*=\"; _files }" : "_files"
    bash_names = bash_words = zsh = fish = ""
    split("", bash_kinds)
}

function finish(file)
{
    if (program == "")
        return
    origin = "# Completion for " program ", made from its table of options.\n"

    file = dir "/bash/" program
    printf "%s%s", origin, bash_script() >file
    close(file)
    file = dir "/zsh/_" program
    printf "#compdef %s\n%s_arguments -s -S \\\n%s    %s\n", program, origin,
        zsh, quoted("*:FILE:" operand, "'\\''") >file
    close(file)
    file = dir "/fish/" program ".fish"
    printf "%s%s", origin, fish >file
    close(file)
}

# Quotes a word with single quotes; `quote` replaces one within it.
function quoted(text, quote)
{
    gsub(/'/, quote, text)
    return "'" text "'"
}

# ---------------------------------------------------------------------- bash

# An option and the words before its value: "--to" or "--to=", even if bash
# split the latter into two words.
function add_bash(pattern)
{
    if (name != "")
        bash_names = bash_names " --" name \
            (metavar == "" || optional ? "" : "=")
    if (letter != "")
        bash_names = bash_names " -" letter
    if (kind == "flag")
        return

    pattern = name == "" ? "" : "--" name "="
    if (name != "" && !optional)
        pattern = pattern " | --" name
    if (letter != "" && !optional)
        pattern = pattern (pattern == "" ? "" : " | ") "-" letter
    if (kind == "words" || kind == "list")
        bash_words = bash_words "        " pattern ")\n" \
            "            words='" words "'" \
            (kind == "list" ? "\n            list=yes" : "") " ;;\n"
    else if (kind in bash_kinds)
        bash_kinds[kind] = bash_kinds[kind] " | \\\n            " pattern
    else
        bash_kinds[kind] = "        " pattern
}

function bash_case(kind, commands)
{
    return kind in bash_kinds ? bash_kinds[kind] ") " commands " ;;\n" : ""
}

function bash_script(text)
{
    text = "_PROGRAM()\n" \
"{\n" \
"    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}\n" \
"    local before='' words='' list='' i\n" \
"\n" \
"    COMPREPLY=()\n" \
"    # Where there is nothing in it readline offers files.\n" \
"    for ((i = 1; i < COMP_CWORD; i++)); do\n" \
"        [[ ${COMP_WORDS[i]} != -- ]] || return 0\n" \
"    done\n" \
"\n" \
"    # \"--option=word\" is one word, or three where \"=\" parts words.\n" \
"    if [[ $word == = ]]; then\n" \
"        option=$option= word=''\n" \
"    elif [[ $option == = ]]; then\n" \
"        option=${COMP_WORDS[COMP_CWORD - 2]}=\n" \
"    elif [[ $word == --*=* ]]; then\n" \
"        option=${word%%=*}= word=${word#*=} before=$option\n" \
"    fi\n" \
"\n" \
"    case $option in\n" bash_words bash_case("FILE", "return 0") \
        bash_case("DIR", "compopt -o dirnames +o default; return 0") \
        bash_case("nothing", "compopt +o default; return 0") \
"        *)\n" \
"            [[ $word == -* && -z $before ]] || return 0\n" \
"            words='" substr(bash_names, 2) "' ;;\n" \
"    esac\n" \
"\n" \
"    if [[ -n $list ]]; then\n" \
"        compopt -o nospace\n" \
"        if [[ $word == *,* ]]; then\n" \
"            before+=${word%,*}, word=${word##*,}\n" \
"        fi\n" \
"    fi\n" \
"    compopt +o default\n" \
"    mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- \"$word\")\n" \
"    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace\n" \
"}\n" \
"complete -o default -F _PROGRAM PROGRAM\n"
    gsub(/PROGRAM/, program, text)
    return text
}

# ----------------------------------------------------------------------- zsh

# In the syntax of _arguments; "*" allows every option to be repeated.
function add_zsh(spec, label)
{
    spec = help
    gsub(/[][\\]/, "\\\\&", spec)
    spec = "[" spec "]"
    if (kind != "flag") {
        label = metavar
        gsub(/[:\\]/, "\\\\&", label)
        spec = spec (optional ? "::" : ":") label ":" zsh_action()
    }
    spec = quoted(spec, "'\\''")
    if (name != "" && letter != "" && !optional)
        spec = "{-" letter (metavar == "" ? "" : "+") ",--" name \
            (metavar == "" ? "" : "=") "}" spec
    else
        spec = (name == "" ? "-" letter (metavar == "" ? "" : "+") \
            : "--" name (optional ? "=-" : metavar == "" ? "" : "=")) spec
    zsh = zsh "    '*'" spec " \\\n"
}

function zsh_action()
{
    if (kind == "words")
        return "(" words ")"
    if (kind == "list")
        return "_values -s , " metavar " " words
    if (kind == "FILE")
        return "_files"
    return kind == "DIR" ? "_files -/" : " "
}

# ---------------------------------------------------------------------- fish

function add_fish(line)
{
    line = "complete -c " program
    if (letter != "")
        line = line " -s " letter
    if (name != "")
        line = line " -l " name
    if (kind == "FILE")
        line = line " -r -F"
    else if (kind != "flag")
        line = line (optional ? " -f" : " -x")
    if (kind == "words")
        line = line " -a " quoted(words, "\\'")
    else if (kind == "list")
        line = line " -a " \
            quoted("(__fish_complete_list , \"printf %s\\\\\\n " words "\")",
                "\\'")
    else if (kind == "DIR")
        line = line " -a '(__fish_complete_directories)'"
    gsub(/\\/, "\\\\", help)
    fish = fish line " -d " quoted(help, "\\'") "\n"
}
