/*
 * forms.h - input forms, by name, and the options that apply to each.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_FORMS_H
#define TOKCAT_FORMS_H

#include <stdbool.h>

#include "tokcat/conf.h"

/* Words of --from and --split, and the setter of --split. */
extern const option_word forms_from[];
extern const option_word forms_splits[];
option_setter forms_set_split;

/* True if files of this form specify the type of their numbers. */
bool forms_are_typed(conf_from from);

/*
 * Refuses options that do not apply to the form, and missing options that it
 * requires.  Returns an exit status; prints a message on failure.
 */
int forms_check(const conf *c);

#endif
