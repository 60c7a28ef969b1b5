/* Loaded into the programs of a fleet: moves their clock, and makes their disk slow.
 *
 * FLEET_CONTROL names a file with two numbers of 64 bits in the order of this machine: what to add to the time of day,
 * in nanoseconds, and how long a write to the disk takes in addition, in microseconds. Programs that these ones start do
 * not load it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile const int64_t *control;
static int (*now)(clockid_t, struct timespec *);
static int (*sync_all)(int);
static int (*sync_data)(int);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FLEET_CONTROL");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = file < 0 ? MAP_FAILED : mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED)
        control = map;
    if (file >= 0)
        close(file);
    unsetenv("LD_PRELOAD");
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    if (!now)
        now = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = now(id, time);
    if (result == 0 && control && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        int64_t all = (int64_t)time->tv_sec * SECOND + time->tv_nsec + control[0];
        time->tv_sec = all / SECOND;
        time->tv_nsec = all % SECOND;
    }
    return result;
}

int gettimeofday(struct timeval *time, void *zone)
{
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return -1;
    time->tv_sec = exact.tv_sec;
    time->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return -1;
    if (where)
        *where = exact.tv_sec;
    return exact.tv_sec;
}

static void wait_for_disk(void)
{
    int64_t pause = control ? control[1] : 0;
    if (pause > 0)
        usleep((useconds_t)pause);
}

int fsync(int file)
{
    if (!sync_all)
        sync_all = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_for_disk();
    return sync_all(file);
}

int fdatasync(int file)
{
    if (!sync_data)
        sync_data = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_for_disk();
    return sync_data(file);
}
