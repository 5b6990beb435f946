// SPDX-License-Identifier: Apache-2.0
// Loaded before the C library (LD_PRELOAD): makes the n-th call of one function fail, as disks, memory and processes
// fail. check_faults.py says which by the environment:
//   REHEARSE_FAULT        the function: open, read, write, fsync, rename, mmap, fork, malloc (of a mebibyte and more)
//   REHEARSE_FAULT_AT     which call, from 1; 0: none, they are only counted
//   REHEARSE_FAULT_LASTS  not empty: that call and all later ones, as a disk that stays full
//   REHEARSE_FAULT_ERRNO  what it fails with; -1: write writes half of what it should (a short write is no failure)
//   REHEARSE_FAULT_COUNT  the file that takes the number of calls, as text, each process its own line
// Calls of the MPI library, of its daemon and of oneDNN (which ends by a segmentation fault where mmap gives it no room
// for its code) are neither counted nor failed: what they do then is theirs.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Fault {
    const char* function = nullptr;
    const char* count_file = nullptr;
    long at = 0;
    int error = EIO;
    bool lasts = false;
};

std::atomic<long> calls{0};
std::atomic<bool> ready{false};
Fault fault;

// Constructors of libraries run before the program's own code; what they open is part of starting a process.
__attribute__((constructor)) void begin() {
    fault.function = std::getenv("REHEARSE_FAULT");
    fault.count_file = std::getenv("REHEARSE_FAULT_COUNT");
    const char* at = std::getenv("REHEARSE_FAULT_AT");
    const char* error = std::getenv("REHEARSE_FAULT_ERRNO");
    const char* lasts = std::getenv("REHEARSE_FAULT_LASTS");
    fault.at = at ? std::atol(at) : 0;
    fault.error = error ? std::atoi(error) : EIO;
    fault.lasts = lasts && *lasts;
    ready = fault.function != nullptr && std::strcmp(program_invocation_short_name, "orted") != 0;
}

__attribute__((destructor)) void end() {
    if (!ready || !fault.count_file) {
        return;
    }
    ready = false;
    char line[32];
    const int length = std::snprintf(line, sizeof line, "%ld\n", calls.load());
    const long file = syscall(SYS_openat, AT_FDCWD, fault.count_file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file >= 0) {
        syscall(SYS_write, file, line, length);
        syscall(SYS_close, file);
    }
}

bool is_of_others(const void* caller) {
    Dl_info of{};
    if (caller == nullptr || dladdr(caller, &of) == 0 || of.dli_fname == nullptr) {
        return false;
    }
    for (const char* part : {"libopen-", "libmpi", "libpmix", "libevent", "/openmpi", "/pmix", "libmunge", "libdnnl"}) {
        if (std::strstr(of.dli_fname, part) != nullptr) {
            return true;
        }
    }
    return false;
}

bool fails(const char* function, const void* caller = __builtin_return_address(0)) {
    if (!ready || std::strcmp(function, fault.function) != 0 || is_of_others(caller)) {
        return false;
    }
    const long call = ++calls;
    if (fault.at == 0 || (fault.lasts ? call < fault.at : call != fault.at)) {
        return false;
    }
    errno = fault.error > 0 ? fault.error : EIO;
    return true;
}

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

constexpr std::size_t large = 1 << 20;

bool needs_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

// Files of the kernel that tell about this machine are not the program's.
bool ours(const char* path) {
    return std::strncmp(path, "/proc", 5) != 0 && std::strncmp(path, "/sys", 4) != 0 &&
           std::strncmp(path, "/dev/", 5) != 0;
}

}  // namespace

extern "C" {

#define REHEARSE_OPEN(name)                                                   \
    int name(const char* path, int flags, ...) {                              \
        static auto* const real = next<int(const char*, int, mode_t)>(#name); \
        mode_t mode = 0;                                                      \
        if (needs_mode(flags)) {                                              \
            va_list list;                                                     \
            va_start(list, flags);                                            \
            mode = va_arg(list, mode_t);                                      \
            va_end(list);                                                     \
        }                                                                     \
        return ours(path) && fails("open") ? -1 : real(path, flags, mode);    \
    }
REHEARSE_OPEN(open)
REHEARSE_OPEN(open64)

#define REHEARSE_OPENAT(name)                                                      \
    int name(int folder, const char* path, int flags, ...) {                       \
        static auto* const real = next<int(int, const char*, int, mode_t)>(#name); \
        mode_t mode = 0;                                                           \
        if (needs_mode(flags)) {                                                   \
            va_list list;                                                          \
            va_start(list, flags);                                                 \
            mode = va_arg(list, mode_t);                                           \
            va_end(list);                                                          \
        }                                                                          \
        return ours(path) && fails("open") ? -1 : real(folder, path, flags, mode); \
    }
REHEARSE_OPENAT(openat)
REHEARSE_OPENAT(openat64)

#define REHEARSE_FOPEN(name)                                                    \
    FILE* name(const char* path, const char* mode) {                            \
        static auto* const real = next<FILE*(const char*, const char*)>(#name); \
        return ours(path) && fails("open") ? nullptr : real(path, mode);        \
    }
REHEARSE_FOPEN(fopen)
REHEARSE_FOPEN(fopen64)

ssize_t read(int file, void* to, size_t bytes) {
    static auto* const real = next<ssize_t(int, void*, size_t)>("read");
    return fails("read") ? -1 : real(file, to, bytes);
}

ssize_t write(int file, const void* from, size_t bytes) {
    static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
    if (!fails("write")) {
        return real(file, from, bytes);
    }
    return fault.error < 0 ? real(file, from, (bytes + 1) / 2) : -1;
}

ssize_t writev(int file, const iovec* from, int parts) {
    static auto* const real = next<ssize_t(int, const iovec*, int)>("writev");
    return fault.error > 0 && fails("write") ? -1 : real(file, from, parts);
}

#define REHEARSE_PWRITE(name)                                                            \
    ssize_t name(int file, const void* from, size_t bytes, off_t at) {                   \
        static auto* const real = next<ssize_t(int, const void*, size_t, off_t)>(#name); \
        return fault.error > 0 && fails("write") ? -1 : real(file, from, bytes, at);     \
    }
REHEARSE_PWRITE(pwrite)
REHEARSE_PWRITE(pwrite64)

int fsync(int file) {
    static auto* const real = next<int(int)>("fsync");
    return fails("fsync") ? -1 : real(file);
}

int fdatasync(int file) {
    static auto* const real = next<int(int)>("fdatasync");
    return fails("fsync") ? -1 : real(file);
}

int rename(const char* from, const char* to) {
    static auto* const real = next<int(const char*, const char*)>("rename");
    return fails("rename") ? -1 : real(from, to);
}

#define REHEARSE_MMAP(name)                                                                \
    void* name(void* at, size_t bytes, int allowed, int flags, int file, off_t offset) {   \
        static auto* const real = next<void*(void*, size_t, int, int, int, off_t)>(#name); \
        return fails("mmap") ? MAP_FAILED : real(at, bytes, allowed, flags, file, offset); \
    }
REHEARSE_MMAP(mmap)
REHEARSE_MMAP(mmap64)

pid_t fork() {
    static auto* const real = next<pid_t()>("fork");
    return fails("fork") ? -1 : real();
}

// glibc's own names: dlsym itself allocates.
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) { return bytes >= large && fails("malloc", nullptr) ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
    return count * bytes >= large && fails("malloc", nullptr) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
    return bytes >= large && fails("malloc", nullptr) ? nullptr : __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
    return bytes >= large && fails("malloc", nullptr) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, size_t alignment, size_t bytes) {
    if (bytes >= large && fails("malloc", nullptr)) {
        return ENOMEM;
    }
    *to = __libc_memalign(alignment, bytes);
    return *to ? 0 : ENOMEM;
}
}
