/*
 * job.h - pass all input files through the reader of their form to the output.
 *
 * tokcat converts text, and token files of other programs, to token records.
 * Each module only calls modules that are listed after it:
 *
 *   main        starts a job
 *   conf        the command line; forms: the options of each form;
 *               tokenizer: the digest and vocabulary size of a tokenizer
 *   job         opens the files, runs the reader of their form, ends the
 *               stream
 *   text        --from=ids and bytes: lines of text
 *   jsonl       objects, whose keys become channels; json_columns: a fast
 *               parser for them
 *   arrays      llmc, nanogpt and npy: one array of numbers
 *   megatron, datatrove: an array, and files with sequence boundaries
 *   tfrecord    BERT pre-training samples, parsed by tf_example
 *   split       converts numbers to tokens and splits them into sequences
 *   reader      shared by all readers: messages, limits on ids
 *   state       writes the records, and saves the state of the job
 *   channel     well-known channels, and JSON values as their elements
 *   input       reads files in bounded memory; decompress: gzip and zstd
 *
 * A new form needs an entry in conf.h, forms.c and job.c, and a form_reader.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_JOB_H
#define TOKCAT_JOB_H

#include "tokcat/conf.h"

/*
 * Reads at least one file and writes the stream.  Returns an exit status;
 * prints a message on failure.
 */
int job_run(const conf *c, const char *const *names, int n_names);

#endif
