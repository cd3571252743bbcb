#ifndef C_OPERATION_SUPPORT_H
#define C_OPERATION_SUPPORT_H

#include <stdint.h>

// A number that any thread may read and change at any time, for systems older than the atomic types of Swift's standard library.

/// Returns the number. What another thread did before it changed it has happened.
static inline intptr_t ok_counter_value(const intptr_t *number) {
    return __atomic_load_n(number, __ATOMIC_ACQUIRE);
}

/// Adds to the number. Returns the new one.
static inline intptr_t ok_counter_add(intptr_t *number, intptr_t difference) {
    return __atomic_add_fetch(number, difference, __ATOMIC_ACQ_REL);
}

#endif
