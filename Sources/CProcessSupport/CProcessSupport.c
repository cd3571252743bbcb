#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CProcessSupport.h"

#ifdef __APPLE__
#include <TargetConditionals.h>
#endif
// Nothing elsewhere: Apple's other platforms have no interface for this.
#if !defined(__APPLE__) || TARGET_OS_OSX

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <crt_externs.h>
#include <libproc.h>
#include <sys/event.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434  // The kernel may have it although the headers are older.
#endif
#endif
#ifdef __GLIBC__
#if !__GLIBC_PREREQ(2, 29)  // Inside: elsewhere the preprocessor does not know the macro.
#define posix_spawn_file_actions_addchdir_np(actions, directory) ENOSYS
#endif
#endif

// A program without standard streams gets low numbers for its pipes, which the child would overwrite.
static int above_standard_streams(int descriptor) {
    if (descriptor > 2) return descriptor;
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    close(descriptor);
    return moved;
}

int ok_open(const char *path, int flags) {
    // A named pipe without a reader is an error instead of a wait.
    int descriptor = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0666);
    if (descriptor < 0) return -errno;
    descriptor = above_standard_streams(descriptor);
    if (descriptor < 0) return -errno;
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    return descriptor;
}

int ok_pipe(int descriptors[2], int end) {
#ifdef __APPLE__
    if (pipe(descriptors) != 0) return errno;
    for (int i = 0; i < 2; i++) fcntl(descriptors[i], F_SETFD, FD_CLOEXEC);
#else
    if (pipe2(descriptors, O_CLOEXEC) != 0) return errno;
#endif
    for (int i = 0; i < 2; i++) descriptors[i] = above_standard_streams(descriptors[i]);
    if (descriptors[0] < 0 || descriptors[1] < 0 || fcntl(descriptors[end], F_SETFL, O_NONBLOCK) != 0) {
        int error = errno;
        for (int i = 0; i < 2; i++) if (descriptors[i] >= 0) close(descriptors[i]);
        return error;
    }
#ifdef F_SETNOSIGPIPE
    // On macOS, the signal goes to the whole process, so blocking it on a thread is not enough.
    if (end == 1) fcntl(descriptors[1], F_SETNOSIGPIPE, 1);
#endif
    return 0;
}

static char *const *own_environment(void) {
#ifdef __APPLE__
    return *_NSGetEnviron();  // A library does not see the variable.
#else
    return environ;
#endif
}

int ok_spawn(pid_t *process, char *const arguments[], char *const environment[], const char *directory,
             const int streams[3]) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
#ifdef __APPLE__
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#endif
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    posix_spawnattr_setflags(&attributes, flags);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    for (int i = 0; i < 3 && error == 0; i++) error = posix_spawn_file_actions_adddup2(&actions, streams[i], i);
    if (error == 0 && directory) error = posix_spawn_file_actions_addchdir_np(&actions, directory);
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
#endif
    if (!environment) environment = own_environment();
    if (error == 0) error = posix_spawn(process, arguments[0], &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int ok_exit_descriptor(pid_t process) {
#ifdef __linux__
    return above_standard_streams((int)syscall(SYS_pidfd_open, process, 0));  // Linux 5.3. It closes on exec.
#elif defined(__APPLE__)
    int queue = kqueue();
    if (queue < 0) return -1;
    struct kevent event;
    EV_SET(&event, process, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
    fcntl(queue, F_SETFD, FD_CLOEXEC);
    if (kevent(queue, &event, 1, NULL, 0, NULL) == 0) return queue;
    close(queue);
    return -1;
#else
    (void)process;
    return -1;
#endif
}

#ifdef __linux__
bool ok_stat_has_ended(const char *line) {
    // The state comes after the name, which may have any characters in it.
    const char *name_end = strrchr(line, ')');
    char state;
    long threads = 0;  // After 16 other fields.
    if (!name_end || sscanf(name_end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
                            &state, &threads) < 1) return true;
    // A process whose main thread has ended has this state, too, although others may run.
    return state == 'X' || state == 'x' || (state == 'Z' && threads <= 1);
}

static bool has_ended(pid_t process) {
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    // Other failures, such as too many open files, say nothing about the process.
    if (!file) return errno == ENOENT || errno == ESRCH;
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = 0;
    return ok_stat_has_ended(text);
}

static int compare(const void *left, const void *right) {
    pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;
    return (a > b) - (a < b);
}
#endif

int ok_groups_with_others(const pid_t groups[], int count, bool found[]) {
#ifdef __linux__
    DIR *directory = opendir("/proc");
    if (!directory) return -1;
    memset(found, 0, count * sizeof *found);
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        char *end;
        pid_t process = (pid_t)strtol(entry->d_name, &end, 10);
        if (*end) continue;
        pid_t group = getpgid(process);
        if (group == process) continue;
        const pid_t *place = bsearch(&group, groups, count, sizeof *groups, compare);
        if (place && !found[place - groups]) found[place - groups] = !has_ended(process);
    }
    closedir(directory);
    return 0;
#elif defined(__APPLE__)
    for (int i = 0; i < count; i++) {
        pid_t members[2];  // There is another one among two.
        errno = 0;
        int size = proc_listpids(PROC_PGRP_ONLY, (uint32_t)groups[i], members, sizeof members);
        if (size <= 0 && errno != 0) return -1;
        found[i] = size == sizeof members || (size > 0 && members[0] != groups[i]);
    }
    return 0;
#else
    (void)groups, (void)count, (void)found;
    return -1;
#endif
}

int ok_unread_byte_count(int descriptor) {
    int count = 0;
    return ioctl(descriptor, FIONREAD, &count) == 0 ? count : 0;
}

int ok_has_exited(pid_t process) {
    siginfo_t info = {0};
    if (waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno == ECHILD ? -1 : 0;
    return info.si_pid == process;
}

void ok_block_broken_pipe(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

#endif
