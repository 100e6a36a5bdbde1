/*
 * bert.h - a sample of BERT's pre-training as a sequence with channels.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_BERT_H
#define TOKCAT_BERT_H

#include "tokcat/job.h"

/*
 * Puts the sample that these bytes, a tf.train.Example with the features of
 * create_pretraining_data.py, hold.  The first one tells the channels of the
 * stream.  Returns an exit status, after a message if not STATUS_OK.
 */
int bert_put(job *j, const unsigned char *bytes, size_t n);

#endif
