/*
 * resume.h - the state of a job and resuming from it; packstream(1), --state.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_RESUME_H
#define PACKSTREAM_RESUME_H

#include "files/atomic_file.h"
#include "files/resumable_output.h"
#include "packstream/conf.h"
#include "packstream/rejects.h"

/* Position in the input and the rejects, which the library's state lacks. */
typedef struct resume_position {
    uint32_t file;      /* index of the input file, from 0 */
    ps_token_mark mark; /* position in that file */
    uint64_t records;   /* records put so far */
    rejects_position rejects;
    bool timed; /* packs were flushed by time or a signal */
    output_fingerprint output;
    /*
     * bytes in the files before `file`, or in all if the job has ended;
     * RESUME_UNKNOWN unless they are regular files
     */
    uint64_t input_bytes;
    bool ended; /* the job has ended; for saving only */
} resume_position;

#define RESUME_UNKNOWN UINT64_MAX

/* Size of the job's note in a state, in bytes. */
#define RESUME_NOTE_BYTES 216

/* Capacity of the ring of past input positions. */
#define RESUME_POSITIONS 1024

typedef struct input_position {
    uint32_t file;        /* index of the input file, from 0 */
    uint64_t input_bytes; /* see resume_position */
    ps_token_mark mark;
} input_position;

/* Task of a job, determined from the state. */
typedef enum resume_task {
    TASK_BEGIN, /* pack everything: no state, or a state without packs */
    TASK_RESUME, /* continue packing where the state was saved */
    /* pack everything again, for a reader that wants earlier packs */
    TASK_REPLAY,
    TASK_END,     /* only write END, for a reader that has all packs */
    TASK_COMPARE, /* the job has ended: check that its output is unchanged */
} resume_task;

typedef struct resume {
    const conf *conf;
    atomic_file file;     /* name NULL: no state */
    unsigned char *state; /* as read; owned; NULL: none */
    size_t bytes;         /* size of `state` */
    ps_state summary;     /* contents of `state` */
    resume_position position;
    resume_task task;
    resumable_output output;
    bool same_output;    /* the output belongs to the state */
    uint64_t first_pack; /* see ps_packer_options */

    input_position
        positions[RESUME_POSITIONS]; /* ring, indexed modulo RESUME_POSITIONS */
    uint64_t n_positions;    /* positions added in total */
    uint64_t position_every; /* records between two positions */
    /* number of the record that gets the next position */
    uint64_t next_position;
    uint64_t next_packs; /* number of packs at which the next state is due */
} resume;

/*
 * Checks that the state, if any, is not another file of the job; see
 * state_file_check.  Like the functions below, returns an exit status and
 * prints a message on failure.
 */
int resume_check_name(const conf *c);

/*
 * Reads the state, if there is one and --resume is given, and chooses the task.
 */
int resume_open(resume *r, const conf *c);

/* Position at which the rejects resume; NULL: they are new. */
const rejects_position *resume_rejects(const resume *r);

/*
 * Checks that the state, if any, matches this job: the schema, the options, and
 * the sizes of inputs already read.  Decides whether the output is resumed.
 */
int resume_plan(resume *r, const ps_schema *schema,
                const ps_packer_options *options);

/* Opens the output: the unchanged output of the state, or a new one. */
int resume_open_output(resume *r, int in, int *out);

/*
 * Truncates a new output.  With --state, first saves a blank state with the
 * offset at which the output starts: a job stopped before its first pack starts
 * there again.  Truncates the output of such a job to that offset.
 */
int resume_begin(resume *r, int out);

/* Opens a packer to resume, to write END, or to start a new stream. */
int resume_open_packer(const resume *r, ps_packer **packer, int out,
                       const ps_schema *schema,
                       const ps_packer_options *options);

/* Truncates a resumed output to its size in the state. */
int resume_cut_output(const resume *r, int out);

/* Opens a packer of a completed job, which only provides its totals. */
int resume_open_ended(const resume *r, ps_packer **packer, int out,
                      const ps_schema *schema,
                      const ps_packer_options *options);

/*
 * With a state, starts counting packs to the next state and records to the next
 * position.  Call resume_add_position afterwards.
 */
void resume_start(resume *r, const ps_pack_info *info, uint64_t packs);

/* Adds an input position between two records to the ring. */
void resume_add_position(resume *r, const input_position *position);

/*
 * Syncs the packs written to `out` and saves the state.  The caller sets all
 * members of `position` except file, mark and output, and sets input_bytes only
 * if the job has ended.
 */
int resume_save(resume *r, ps_packer *packer, int out,
                resume_position *position);

void resume_close(resume *r);

#endif
