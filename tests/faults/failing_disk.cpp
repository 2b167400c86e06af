// Preloaded into Python, this makes the Nth call that changes a disk fail.
//
// Before it fails, a call does nothing, half of what it was asked for, or all of it: a disk that reports
// an error has often done something nevertheless. Nothing is counted until it is armed.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>

namespace {

enum Done { nothing, half, all, cut_short };

bool armed = false;
constexpr long most_names = 4096;
const char* names[most_names];  // of the calls seen
long seen = 0, failed = 0, fails_at = 0;
bool fails_for_good = false;
int error_code = EIO;
Done done = nothing;

bool fails(const char* name) {
  if (!armed) return false;
  if (seen < most_names) names[seen] = name;
  ++seen;
  if (seen != fails_at && !(fails_for_good && seen > fails_at)) return false;
  ++failed;
  return true;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// A call that fails: carries it out first if `done` says so, and returns the error.
template <class Call>
int failing(Call call) {
  if (done == cut_short) return call();
  if (done == all) call();
  errno = error_code;
  return -1;
}

// The same for a call that writes. `cut_short` is not an error: fewer bytes are written.
template <class Call>
ssize_t failing_write(std::size_t size, Call call) {
  if (done == cut_short) return call(size > 1 ? size / 2 : size);
  if (done == half && size > 1) call(size / 2);
  if (done == all) call(size);
  errno = error_code;
  return -1;
}

}  // namespace

extern "C" {

// The call with this number fails, counted from 1, and with `for_good` all after it too.
void disk_arm(long number, int for_good, int error, int what_is_done) {
  seen = failed = 0;
  fails_at = number;
  fails_for_good = for_good != 0;
  error_code = error;
  done = static_cast<Done>(what_is_done);
  armed = true;
}

long disk_disarm() {
  armed = false;
  return failed;
}

long disk_seen() { return seen; }

// Returns the name of a call that was seen, counted from 1.
const char* disk_name(long number) {
  return number >= 1 && number <= seen && number <= most_names ? names[number - 1] : "";
}

#define CHANGES(name, parameters, arguments)                          \
  int name parameters {                                               \
    static auto* real = next<int parameters>(#name);                  \
    if (fails(#name)) return failing([&] { return real arguments; }); \
    return real arguments;                                            \
  }

CHANGES(fsync, (int file), (file))
CHANGES(fdatasync, (int file), (file))
CHANGES(ftruncate, (int file, off_t size), (file, size))
CHANGES(ftruncate64, (int file, off64_t size), (file, size))
CHANGES(rename, (const char* from, const char* to), (from, to))
CHANGES(renameat, (int f, const char* from, int t, const char* to), (f, from, t, to))
CHANGES(unlink, (const char* path), (path))
CHANGES(unlinkat, (int folder, const char* path, int flags), (folder, path, flags))
CHANGES(rmdir, (const char* path), (path))
CHANGES(mkdir, (const char* path, mode_t mode), (path, mode))
CHANGES(mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode))
CHANGES(link, (const char* from, const char* to), (from, to))
CHANGES(linkat, (int f, const char* from, int t, const char* to, int flags),
        (f, from, t, to, flags))
CHANGES(fchmod, (int file, mode_t mode), (file, mode))
CHANGES(fchown, (int file, uid_t owner, gid_t group), (file, owner, group))

#define WRITES(name, parameters, arguments)                                         \
  ssize_t name parameters {                                                         \
    static auto* real = next<ssize_t parameters>(#name);                            \
    if (file > STDERR_FILENO && fails(#name)) {                                     \
      return failing_write(size, [&](std::size_t size) { return real arguments; }); \
    }                                                                               \
    return real arguments;                                                          \
  }

WRITES(write, (int file, const void* data, std::size_t size), (file, data, size))
WRITES(pwrite, (int file, const void* data, std::size_t size, off_t at), (file, data, size, at))
WRITES(pwrite64, (int file, const void* data, std::size_t size, off64_t at), (file, data, size, at))

// Opening changes the disk if it may create a file.
#define OPENS(name, first_parameters, first_arguments)                                \
  int name(first_parameters const char* path, int flags, ...) {                       \
    static auto* real = next<int(first_parameters const char*, int, ...)>(#name);     \
    std::va_list rest;                                                                \
    va_start(rest, flags);                                                            \
    const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;           \
    va_end(rest);                                                                     \
    if (flags & O_CREAT && fails(#name)) {                                            \
      if (done == cut_short) return real(first_arguments path, flags, mode);          \
      return failing([&] { return close(real(first_arguments path, flags, mode)); }); \
    }                                                                                 \
    return real(first_arguments path, flags, mode);                                   \
  }
#define COMMA ,

OPENS(open, , )
OPENS(open64, , )
OPENS(openat, int folder COMMA, folder COMMA)
OPENS(openat64, int folder COMMA, folder COMMA)

}  // extern "C"
