/*
 * forms.h - the forms of input, by name, and the options that go with each.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_FORMS_H
#define TOKCAT_FORMS_H

#include <stdbool.h>

#include "tokcat/conf.h"

/* The words of --from and --split, and the setter of --split. */
extern const option_word forms_from[];
extern const option_word forms_splits[];
option_setter forms_set_split;

/* True for a form whose files say of what type their numbers are. */
bool forms_are_typed(conf_from from);

/*
 * Refuses options that do not go with the chosen form, and the lack of those
 * that it needs.  Returns an exit status, after a message if not STATUS_OK.
 */
int forms_check(const conf *c);

#endif
