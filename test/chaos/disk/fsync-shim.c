/* Replaces fsync and fdatasync with those of a failing disk. The file named by CHAOS_FSYNC_FILE selects the
 * fault: "slow MS" delays each call, "fail" returns EIO; without the file they work normally. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int harm(void) {
  const char *path = getenv("CHAOS_FSYNC_FILE");
  FILE *file = path == NULL ? NULL : fopen(path, "r");
  int ms = 0;
  int fails;
  if (file == NULL) return 0;
  if (fscanf(file, "slow %d", &ms) == 1) usleep((useconds_t)ms * 1000);
  rewind(file);
  fails = fgetc(file) == 'f';
  fclose(file);
  return fails;
}

static int call(const char *name, int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  if (harm()) {
    errno = EIO;
    return -1;
  }
  return real(fd);
}

int fsync(int fd) { return call("fsync", fd); }

int fdatasync(int fd) { return call("fdatasync", fd); }
