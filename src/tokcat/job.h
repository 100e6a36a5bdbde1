/*
 * job.h - all input files through the reader of their form to the output.
 *
 * tokcat turns text, and other programs' files of tokens, into token records.
 * Calls go one way, from the first of these to the last:
 *
 *   main        starts a job
 *   conf        the command line; forms: which options go with which form;
 *               digest: the name of the tokenizer in the stream
 *   job         opens the files, runs the reader of their form, ends the
 *               stream
 *   text        --from=ids and bytes: lines of text
 *   jsonl       objects, whose keys become channels
 *   arrays      llmc, nanogpt and npy: one array of numbers
 *   megatron, datatrove: an array, and files that tell where sequences end
 *   tfrecord    samples of BERT's pre-training, found by tf_example
 *   split       numbers of arrays as tokens, cut into sequences
 *   reader      what the readers share: places for messages, limits of ids
 *   channel     well-known channels, and JSON values as their elements
 *   input       the inputs, in bounded memory
 *
 * A new form needs an entry in conf.h, forms.c and job.c, and a form_reader.
 * tokcat uses the library's public header, src/cli, and, for the frames of
 * TFRecord files, src/wire.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_JOB_H
#define TOKCAT_JOB_H

#include "tokcat/conf.h"

/*
 * Reads the files, of which there is one at least, and writes the stream.
 * Returns an exit status, after a message if it is not STATUS_OK.
 */
int job_run(const conf *c, const char *const *names, int n_names);

#endif
