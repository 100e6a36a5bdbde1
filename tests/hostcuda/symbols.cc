/*
 * symbols.cc - names of kernels.
 *
 * Kernels are mostly static functions, which dladdr() does not find.  They are
 * in the symbol table of the loaded file, unless it is stripped.
 *
 * SPDX-License-Identifier: MIT
 */
#include "internal.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

using namespace hostcuda;

/* True if a table of count times size bytes fits a file of that length. */
static bool is_inside(uint64_t offset, uint64_t size, uint64_t length)
{
    return offset <= length && size <= length - offset;
}

/* The function that begins at value, in an ELF file of length bytes. */
static std::string find_symbol(const char *file, size_t length, uint64_t value)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)file;
    const ElfW(Shdr) *sections;

    if (length < sizeof *head
        || !is_inside(head->e_shoff, head->e_shnum * sizeof *sections, length))
        return "";
    sections = (const ElfW(Shdr) *)(file + head->e_shoff);
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) &s = sections[i];

        if (s.sh_type != SHT_SYMTAB || s.sh_link >= head->e_shnum
            || !is_inside(s.sh_offset, s.sh_size, length))
            continue;
        const ElfW(Shdr) &text = sections[s.sh_link];
        const ElfW(Sym) *symbols = (const ElfW(Sym) *)(file + s.sh_offset);

        for (size_t k = 0; k < s.sh_size / sizeof *symbols; k++)
            if (symbols[k].st_value == value
                && (symbols[k].st_info & 15) == STT_FUNC
                && symbols[k].st_name < text.sh_size
                && is_inside(text.sh_offset, text.sh_size, length))
                return file + text.sh_offset + symbols[k].st_name;
    }
    return "";
}

/* Without return type, parameters and anonymous namespace. */
static std::string shorten(const std::string &mangled)
{
    static const std::string NAMELESS = "(anonymous namespace)::";
    int status;
    char *text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr,
                                     &status);
    std::string name = text ? text : mangled;
    int depth = 0;

    std::free(text);
    for (size_t at; (at = name.find(NAMELESS)) != std::string::npos;)
        name.erase(at, NAMELESS.size());
    for (size_t i = 0; i < name.size(); i++) {
        if (name[i] == '<')
            depth++;
        else if (name[i] == '>')
            depth--;
        else if (name[i] == '(' && !depth)
            name.resize(i);
        else if (name[i] == ' ' && !depth) {
            name.erase(0, i + 1);
            i = (size_t)-1;
        }
    }
    return name;
}

static std::string look_up(const void *kernel)
{
    Dl_info module;
    struct stat s;
    std::string name;
    char unknown[32];

    std::snprintf(unknown, sizeof unknown, "kernel at %p", kernel);
    if (!dladdr(kernel, &module) || !module.dli_fname)
        return unknown;
    int fd = open(module.dli_fname, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* a program found by $PATH */
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &s) && s.st_size > 0) {
        void *file = mmap(nullptr, (size_t)s.st_size, PROT_READ, MAP_PRIVATE,
                          fd, 0);
        const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)module.dli_fbase;
        const uintptr_t base
            = head->e_type == ET_DYN ? (uintptr_t)module.dli_fbase : 0;

        if (file != MAP_FAILED) {
            name = find_symbol((const char *)file, (size_t)s.st_size,
                               (uintptr_t)kernel - base);
            munmap(file, (size_t)s.st_size);
        }
    }
    if (fd >= 0)
        close(fd);
    return name.empty() ? unknown : shorten(name);
}

const char *hostcuda::kernel_name(const void *kernel)
{
    static std::mutex &names_lock = *new std::mutex;
    static auto &names = *new std::map<const void *, std::string>;
    std::lock_guard<std::mutex> held(names_lock);
    auto found = names.find(kernel);

    if (found == names.end())
        found = names.emplace(kernel, look_up(kernel)).first;
    return found->second.c_str();
}
