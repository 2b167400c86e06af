// Preloaded into Python, this records every call that changes a disk, in the order of the calls.
//
// `power.py` reads the log. An entry is a kind, two numbers and two byte strings, see `put`. Nothing is
// recorded before `record_to`. One thread only.

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int log_file = -1;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void put_bytes(const void* data, std::size_t size) {
  static auto* real = next<ssize_t(int, const void*, std::size_t)>("write");
  const char* at = static_cast<const char*>(data);
  while (size != 0) {
    const ssize_t written = real(log_file, at, size);
    if (written <= 0) std::abort();
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

void put(char kind, std::uint64_t one, std::uint64_t other, const std::string& name,
         const void* data = nullptr, std::size_t size = 0) {
  const std::uint64_t numbers[] = {static_cast<unsigned char>(kind), one, other, name.size(), size};
  put_bytes(numbers, sizeof numbers);
  put_bytes(name.data(), name.size());
  put_bytes(data, size);
}

bool records() { return log_file >= 0; }

std::string absolute(int folder, const char* path) {
  if (path[0] == '/') return path;
  char name[64], found[PATH_MAX];
  std::snprintf(name, sizeof name, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d",
                folder);
  const ssize_t size = readlink(name, found, sizeof found);
  return std::string(found, size < 0 ? 0 : static_cast<std::size_t>(size)) + "/" + path;
}

std::uint64_t inode(int file) {
  struct stat about;
  return fstat(file, &about) == 0 ? about.st_ino : 0;
}

std::uint64_t inode(const std::string& path) {
  struct stat about;
  return lstat(path.c_str(), &about) == 0 ? about.st_ino : 0;
}

void put_names(char kind, const std::string& from, const std::string& to) {
  put(kind, 0, 0, from, to.data(), to.size());
}

}  // namespace

extern "C" {

// Starts a log in this file.
void record_to(const char* path) {
  log_file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

// Writes a mark of the caller into the log.
void record_mark(const char* text) {
  if (records()) put('!', 0, 0, text);
}

#define ON_SUCCESS(name, parameters, arguments, entry) \
  int name parameters {                                \
    static auto* real = next<int parameters>(#name);   \
    const int result = real arguments;                 \
    if (result == 0 && records()) entry;               \
    return result;                                     \
  }

ON_SUCCESS(fsync, (int file), (file), put('S', inode(file), 0, ""))
ON_SUCCESS(fdatasync, (int file), (file), put('S', inode(file), 0, ""))
ON_SUCCESS(ftruncate, (int file, off_t size), (file, size), put('T', inode(file), size, ""))
ON_SUCCESS(ftruncate64, (int file, off64_t size), (file, size), put('T', inode(file), size, ""))
ON_SUCCESS(rename, (const char* from, const char* to), (from, to),
           put_names('R', absolute(AT_FDCWD, from), absolute(AT_FDCWD, to)))
ON_SUCCESS(renameat, (int f, const char* from, int t, const char* to), (f, from, t, to),
           put_names('R', absolute(f, from), absolute(t, to)))
ON_SUCCESS(link, (const char* from, const char* to), (from, to),
           put_names('L', absolute(AT_FDCWD, from), absolute(AT_FDCWD, to)))
ON_SUCCESS(linkat, (int f, const char* from, int t, const char* to, int flags),
           (f, from, t, to, flags), put_names('L', absolute(f, from), absolute(t, to)))
ON_SUCCESS(unlink, (const char* path), (path), put('U', 0, 0, absolute(AT_FDCWD, path)))
ON_SUCCESS(unlinkat, (int f, const char* path, int flags), (f, path, flags),
           put('U', 0, 0, absolute(f, path)))
ON_SUCCESS(rmdir, (const char* path), (path), put('U', 0, 0, absolute(AT_FDCWD, path)))
ON_SUCCESS(mkdir, (const char* path, mode_t mode), (path, mode),
           put('D', inode(absolute(AT_FDCWD, path)), 0, absolute(AT_FDCWD, path)))
ON_SUCCESS(mkdirat, (int f, const char* path, mode_t mode), (f, path, mode),
           put('D', inode(absolute(f, path)), 0, absolute(f, path)))

ssize_t write(int file, const void* data, std::size_t size) {
  static auto* real = next<ssize_t(int, const void*, std::size_t)>("write");
  off_t at = 0;
  if (records() && file > STDERR_FILENO) {
    at = lseek(file, 0, fcntl(file, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
  }
  const ssize_t written = real(file, data, size);
  if (written > 0 && at >= 0 && records() && file > STDERR_FILENO) {
    put('W', inode(file), static_cast<std::uint64_t>(at), "", data,
        static_cast<std::size_t>(written));
  }
  return written;
}

#define WRITES_AT(name, offset)                                                      \
  ssize_t name(int file, const void* data, std::size_t size, offset at) {            \
    static auto* real = next<ssize_t(int, const void*, std::size_t, offset)>(#name); \
    const ssize_t written = real(file, data, size, at);                              \
    if (written > 0 && records()) {                                                  \
      put('W', inode(file), static_cast<std::uint64_t>(at), "", data,                \
          static_cast<std::size_t>(written));                                        \
    }                                                                                \
    return written;                                                                  \
  }

WRITES_AT(pwrite, off_t)
WRITES_AT(pwrite64, off64_t)

#define OPENS(name, first_parameters, first_arguments, folder)                            \
  int name(first_parameters const char* path, int flags, ...) {                           \
    static auto* real = next<int(first_parameters const char*, int, ...)>(#name);         \
    std::va_list rest;                                                                    \
    va_start(rest, flags);                                                                \
    const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;               \
    va_end(rest);                                                                         \
    const bool changes = records() && flags & (O_CREAT | O_TRUNC);                        \
    const bool is_new = changes && inode(absolute(folder, path)) == 0;                    \
    const int file = real(first_arguments path, flags, mode);                             \
    if (file >= 0 && is_new) put('C', inode(file), 0, absolute(folder, path));            \
    if (file >= 0 && changes && !is_new && flags & O_TRUNC) put('T', inode(file), 0, ""); \
    return file;                                                                          \
  }
#define COMMA ,

OPENS(open, , , AT_FDCWD)
OPENS(open64, , , AT_FDCWD)
OPENS(openat, int at COMMA, at COMMA, at)
OPENS(openat64, int at COMMA, at COMMA, at)

}  // extern "C"
