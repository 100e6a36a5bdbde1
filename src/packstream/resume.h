/*
 * resume.h - the state of a job, kept in a file, and what follows from it
 * when the job is begun again; packstream(1), --state.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_RESUME_H
#define PACKSTREAM_RESUME_H

#include "cli/atomic_file.h"
#include "cli/output_check.h"
#include "packstream/conf.h"
#include "packstream/rejects.h"

/* Where the input and the rejects are: what the library's state lacks. */
typedef struct resume_place {
    uint32_t file; /* of the inputs, from 0 */
    ps_token_mark mark;
    uint64_t records; /* put so far */
    rejects_mark rejects;
    bool timed; /* packs were flushed because of time or a signal */
    output_check_mark output;
    uint64_t input_bytes; /* read of the files before that one, or of all if
                             the job has ended; RESUME_UNKNOWN unless they
                             are regular files */
    bool ended; /* in what is to be saved */
} resume_place;

#define RESUME_UNKNOWN UINT64_MAX

/* What the job adds to a state. */
#define RESUME_NOTE_BYTES 216

/* Places of the input that were passed, oldest first, in a ring. */
#define RESUME_MARKS 1024

typedef struct resume_mark {
    uint32_t file;
    uint64_t input_bytes; /* as in resume_place */
    ps_token_mark mark;
} resume_mark;

/* What a job has to do, by the state that it finds. */
typedef enum resume_task {
    TASK_BEGIN,   /* pack all: there is no state, or it knows of no pack */
    TASK_GO_ON,   /* pack on from where the state was saved */
    TASK_REPLAY,  /* pack all anew, for a reader that wants earlier packs */
    TASK_END,     /* write END alone, for a reader that has all packs */
    TASK_COMPARE, /* the job has ended: see that its output is unchanged */
} resume_task;

typedef struct resume {
    const conf *conf;
    atomic_file file; /* its name NULL: there is none */
    unsigned char *state; /* that was read, or NULL */
    size_t bytes;
    ps_state summary;
    resume_place place;
    resume_task task;
    output_check output;
    bool output_is_new; /* not gone on with */
    uint64_t first_pack; /* as in ps_packer_options */

    resume_mark marks[RESUME_MARKS];
    uint64_t n_marks;    /* ever */
    uint64_t mark_every; /* records */
    uint64_t next_mark;  /* the record that gets the next mark */
    uint64_t next_packs; /* with so many it is time to save */
} resume;

/*
 * Whether the state, if there is to be one, is no other file of the job; as
 * state_file_check.  An exit status after a message, here and below.
 */
int resume_check_name(const conf *c);

/*
 * Reads the state, if there is one and the command line wants to go on from
 * it.
 */
int resume_open(resume *r, const conf *c);

/*
 * Whether the state, if there is one, is of this job: of this schema, of these
 * options, and of inputs that have the size they had when they were read.
 */
int resume_fits(const resume *r, const ps_schema *schema,
                const ps_packer_options *options);

/* Opens the output: that of the state, as it was then, or a new one. */
int resume_open_output(resume *r, int in, int *out);

/*
 * Before the first byte is written to a file, saves a state with the place
 * where that will be: a job that is stopped before its first pack is then
 * begun again there.  If this is such a job, cuts what was written.
 */
int resume_begin(resume *r, int out);

/* Opens the packer: one that goes on, one that ends, or a new one. */
int resume_open_packer(const resume *r, ps_packer **packer, int out,
                       const ps_schema *schema,
                       const ps_packer_options *options);

/* Cuts an output that goes on to where the state was saved. */
int resume_cut_output(const resume *r, int out);

/* Opens a packer of a job that has ended, which can only tell what it did. */
int resume_open_ended(const resume *r, ps_packer **packer, int out,
                      const ps_schema *schema,
                      const ps_packer_options *options);

/*
 * Where a state is kept, this begins to count packs up to the next state, and
 * records up to the next mark; resume_add_mark is to follow.
 */
void resume_start(resume *r, const ps_pack_info *info, uint64_t packs);

/* Keeps a place of the input between two records. */
void resume_add_mark(resume *r, const resume_mark *mark);

/*
 * Brings what the packer wrote to `out` to the disk, and saves its state.
 * `place` is filled in but for the mark and the output, and for input_bytes
 * unless the job has ended.
 */
int resume_save(resume *r, ps_packer *packer, int out, resume_place *place);

void resume_close(resume *r);

#endif
