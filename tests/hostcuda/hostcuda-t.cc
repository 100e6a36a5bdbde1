/*
 * hostcuda-t.cc - runs each case in its own process, and prints TAP.
 *
 *     hostcuda-t [CASE]
 *
 * SPDX-License-Identifier: MIT
 */
#include "cases.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#if defined(HOSTCUDA_BUILD_ASAN)
static const unsigned BUILD = ASAN;
#elif defined(HOSTCUDA_BUILD_TSAN)
static const unsigned BUILD = TSAN;
#elif defined(HOSTCUDA_BUILD_COUNTERS)
static const unsigned BUILD = COUNTERS;
#else
static const unsigned BUILD = PLAIN;
#endif

static const test_case *const lists[] = {device_cases, host_cases, graph_cases};

/* Runs this program with arguments; returns its output and status. */
static std::string run_child(const char *name, const char *environment,
                             int *status)
{
    std::string said;
    char part[4096];
    int ends[2];

    CHECK(!pipe(ends));
    const pid_t child = fork();

    CHECK(child >= 0);
    if (!child) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        if (environment)
            putenv(const_cast<char *>(environment));
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
        setenv("TSAN_OPTIONS", "halt_on_error=1", 1);
        alarm(30);
        execl("/proc/self/exe", "hostcuda-t", name, (char *)nullptr);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
        said.append(part, (size_t)n);
    close(ends[0]);
    CHECK(waitpid(child, status, 0) == child);
    return said;
}

static void print_comment(const std::string &said)
{
    for (size_t i = 0; i < said.size();) {
        const size_t end = std::min(said.find('\n', i), said.size());

        std::printf("# %s\n", said.substr(i, end - i).c_str());
        i = end + 1;
    }
}

/* True if a case ends as expected. */
static bool run_case(const test_case &c)
{
    int status;
    const std::string said = run_child(c.name, c.environment, &status);
    const bool good
        = c.fault ? status != 0 && said.find(c.fault) != std::string::npos
                  : status == 0;

    if (!good) {
        std::printf("# status %d; wanted: %s\n", status,
                    c.fault ? c.fault : "success");
        print_comment(said);
    }
    return good;
}

int main(int argc, char **argv)
{
    unsigned number = 0, failed = 0;

    for (const test_case *list : lists)
        for (const test_case *c = list; c->name; c++) {
            if (argc > 1) {
                if (!std::strcmp(c->name, argv[1])) {
                    c->run();
                    return 0;
                }
                continue;
            }
            if (!(c->builds & BUILD))
                continue;
            const bool good = run_case(*c);

            failed += !good;
            std::printf("%sok %u - %s%s%s\n", good ? "" : "not ", ++number,
                        c->name, c->environment ? " " : "",
                        c->environment ? c->environment : "");
            std::fflush(stdout);
        }
    if (argc > 1)
        return 64;
    std::printf("1..%u\n", number);
    return failed != 0;
}
