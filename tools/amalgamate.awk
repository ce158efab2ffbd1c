# tools/amalgamate.awk - one translation unit out of many files: prints each named file with our own
# #include lines replaced by the file they name; a header once, a .def list each time it is wanted.
# Use: awk -v without="JOT_NO_DEVICES a.c b.c JOT_NO_EXPORT c.c" -f tools/amalgamate.awk a.c b.c c.c ... > jot.c
# without: a macro, and the files that are left out where it is defined
function expand(file,    line, name) {
    if (file ~ /\.h$/ && (file in seen)) return
    seen[file] = 1
    printf "\n/* ---------------- %s ---------------- */\n", file
    while ((getline line < file) > 0) {
        if (line ~ /^#[ ]*include "/) {
            name = line
            sub(/^#[ ]*include "/, "", name)
            sub(/".*$/, "", name)
            if (name ~ /^(core|nn|layer|expr|speculate|data|io)\.h$/) { if (!jot++) print "#include \"jot.h\""; continue }
            expand(name)
        } else print line
    }
    close(file)
}
BEGIN {
    print "/* jot.c - the whole library in one file, made by `make dist`; edit the originals, not this. */"
    print "#if !defined(JOT_NO_HOST) && !defined(_GNU_SOURCE)"
    print "#define _GNU_SOURCE /* dlopen, threads, files: the hosted part at the end */"
    print "#endif"
    print "#if defined(__GNUC__) && !defined(__TINYC__)"
    print "#define JOT_FN static __attribute__((unused))"
    print "#else"
    print "#define JOT_FN static"
    print "#endif"
    n = split(without, word, " ")
    for (i = 1; i <= n; i++)
        if (word[i] !~ /\.c$/) name = word[i]
        else if (word[i] !~ /\/absent\.c$/) left_out[word[i]] = name
    for (i = 1; i < ARGC; i++) {
        file = ARGV[i]
        if (file in left_out) printf "#ifndef %s\n", left_out[file]
        expand(file)
        if (file in left_out) print "#endif"
    }
    exit
}
