/*
 * setters.h - one small setter for each option of tokcat.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_SETTERS_H
#define TOKCAT_SETTERS_H

#include "cli/options.h"

option_setter set_from;
option_setter set_type;
option_setter set_raw;
option_setter set_output;
option_setter set_quiet;
option_setter set_split;
option_setter set_trim;
option_setter set_empty;
option_setter set_ids_key;
option_setter set_channel;
option_setter set_ignore;
option_setter set_vocab;
option_setter set_pad;
option_setter set_bos;
option_setter set_eos;
option_setter set_cls;
option_setter set_sep;
option_setter set_mask;
option_setter set_tokenizer;
option_setter set_labels;

#endif
