// Preloaded into a process, it makes threads sleep now and then after they have released a mutex. What a thread does
// right after its critical section, and takes to be done at once, then comes late: announcements, effects, wake-ups.
//
//   UNLOCK_DELAY_RATE           one of so many releases, 50 by default
//   UNLOCK_DELAY_MICROSECONDS   the longest sleep, 2,000 by default
//   UNLOCK_DELAY_SEED           another seed, other sleeps
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static _Atomic(int (*)(pthread_mutex_t *)) unlock;
static uint64_t rate = 50, longest = 2000, seed = 1;
static atomic_uint_fast64_t thread_count;
static _Thread_local uint64_t state;

static void read_number(const char *name, uint64_t *number) {
    const char *text = getenv(name);
    if (text && *text) *number = strtoull(text, NULL, 10);
}

__attribute__((constructor)) static void prepare(void) {
    read_number("UNLOCK_DELAY_RATE", &rate);
    read_number("UNLOCK_DELAY_MICROSECONDS", &longest);
    read_number("UNLOCK_DELAY_SEED", &seed);
}

// xorshift, a sequence for each thread.
static uint64_t next_random(void) {
    if (state == 0) state = (seed + ++thread_count) * 0x9E3779B97F4A7C15u | 1;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    int (*original)(pthread_mutex_t *) = unlock;
    if (!original) unlock = original = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    int result = original(mutex);
    if (rate > 0 && longest > 0 && next_random() % rate == 0) {
        int error = errno;
        uint64_t microseconds = next_random() % longest;
        nanosleep(&(struct timespec){.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000}, NULL);
        errno = error;
    }
    return result;
}
