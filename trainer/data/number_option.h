/*
 * number_option.h - options whose value is a decimal fraction.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_NUMBER_OPTION_H
#define TR_DATA_NUMBER_OPTION_H

#include "cli/options.h"

/* Setters of options of type double, for OPTION_CALL_FOR. */
option_setter tr_option_share;    /* 0 to 1 */
option_setter tr_option_below_1;  /* 0 to below 1 */
option_setter tr_option_positive; /* 0 or more */

#endif /* TR_DATA_NUMBER_OPTION_H */
