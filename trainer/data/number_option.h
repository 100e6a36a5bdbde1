/*
 * number_option.h - options whose value is a decimal fraction.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_NUMBER_OPTION_H
#define BERT_NUMBER_OPTION_H

#include "cli/options.h"

/* Set a double: for OPTION_CALL_FOR. */
option_setter number_option_share;    /* from 0 to 1 */
option_setter number_option_below_1;  /* from 0 to below 1 */
option_setter number_option_positive; /* from 0 on */

#endif /* BERT_NUMBER_OPTION_H */
