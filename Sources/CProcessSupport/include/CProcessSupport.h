#ifndef C_PROCESS_SUPPORT_H
#define C_PROCESS_SUPPORT_H

#include <stdbool.h>
#include <sys/types.h>

// What Swift cannot see of the system's process interface, or what differs between systems.

/// Opens a file, without waiting, above the standard streams, and so that it closes on exec. Returns a descriptor, or the
/// negative of an error number.
int ok_open(const char *path, int flags);

/// Creates a pipe whose ends are above the standard streams and close on exec. The end that is named, 0 for reading and 1 for
/// writing, does not block. If it is closed for reading, writing to it sends no signal on macOS. Returns 0, or an error number.
int ok_pipe(int descriptors[2], int end);

/// Starts a program, whose path is the first argument, in a process group of its own, without blocked or ignored signals, and
/// with three descriptors as its standard streams. Every other descriptor is closed. Without an environment it gets that of this
/// process, byte by byte. Returns 0, or an error number.
int ok_spawn(pid_t *process, char *const arguments[], char *const environment[], const char *directory,
             const int streams[3]);

/// Returns a descriptor that becomes readable when a child process ends, or -1 where the system has none.
int ok_exit_descriptor(pid_t process);

/// Returns whether a child process has ended, and leaves it to be waited for. Returns -1 if it is no child any more.
int ok_has_exited(pid_t process);

/// Finds out which process groups have members that run, apart from their leaders, in one pass over all processes. The groups
/// are in ascending order. Returns 0, or -1 where the system does not tell.
int ok_groups_with_others(const pid_t groups[], int count, bool found[]);

#ifdef __linux__
/// Returns whether a process has ended, with all its threads, from what `/proc/PID/stat` says.
bool ok_stat_has_ended(const char *line);
#endif

/// Returns how many bytes can be read from a pipe.
int ok_unread_byte_count(int descriptor);

/// Keeps writes to closed pipes from sending a signal to the calling thread, which is where Linux sends it.
void ok_block_broken_pipe(void);

#endif
