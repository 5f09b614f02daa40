/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations that the files of the fuzzer share. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <unistd.h>

#include "record.h"

#define BUFFER (128 << 10)
#define PAGE ((u64)sysconf(_SC_PAGESIZE))
#define lengthof(array) (sizeof(array) / sizeof((array)[0]))

/* random.c */

/* State of the random number generator. */
extern u64 randomness;

/* Has BUFFER bytes, and a few more. */
extern u8 *buffer;
/* Below 4 GiB, for the calls of 32-bit programs. */
extern u8 *low;

void set_up_memory(void);
/* A number is drawn also if n is 0; it is 0 then. */
u32 below(u32 n);
int one_in(u32 n);
u64 any_number(void);
void *any_pointer(void);
size_t any_size(void);

/* paths.c */

extern size_t stream_count;
/* Half of the processes do little except read: processes that start and stop traces hold up the others. */
extern int likes_streams;

void find_paths(int argc, char **argv);
void find_events(void);
int is_stream(const char *path);
const char *any_path(void);
/* NULL if there is none. */
const char *any_stream_path(void);
const char *any_event(void);

/* texts.c */

extern char text[BUFFER];

/* Makes a text for a file (NULL: not one of rtrace's) and returns its length. */
size_t say_something(const char *path);

/* counts.c */

enum operation {
	OPEN, CLOSE, READ, PREAD, READV, WRITE, PWRITE, WRITEV, LSEEK, IOCTL_GET, IOCTL_PUT,
	IOCTL_FLUSH, IOCTL_ANY, IOCTL_COMPAT, SPLICE_OUT, SPLICE_IN, TEE, VMSPLICE, SENDFILE,
	COPY_FILE_RANGE, POLL, EPOLL_CTL, EPOLL_WAIT, AIO_POLL, AIO_READ, MMAP, FCNTL, DUP, REOPEN,
	STAT, TRUNCATE, MISC, INOTIFY, FORK, KILL, STARTS, OPERATIONS
};

void set_up_counts(void);
/* Counts an operation with this result, and returns it. */
long counted(enum operation operation, long result);
/* Returns whether each step of a reader has succeeded at least once. */
int got_somewhere(void);
void print_counts(void);

/* files.c */

#define FDS 24

struct open_file {
	int fd;
	/* NULL for a file that is not rtrace's. */
	const char *path;
};

extern struct open_file files[FDS];

void set_up_files(void);
struct open_file *any_file(void);
/* More likely than not a stream. */
struct open_file *any_stream(void);
/* Replaces another file; does nothing if fd is an error. */
void keep(int fd, const char *path);
void close_file(struct open_file *file);
void do_open(void);
void do_pipe(void);
void do_dup(void);

/* transfers.c */

void do_read(void);
void do_write(void);
void do_ioctl(void);
void do_splice(void);
void do_packets(void);

/* operations.c */

void do_something(void);

/* fuzz.c */

/* Alarms interrupt every wait. A fork does not inherit them. */
void set_alarms(void);

#endif
