/*
 * stop.h - SIGTERM and SIGINT, which end training after a whole step.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_STOP_H
#define BERT_STOP_H

/* From now on these signals are remembered, the first time they come. */
void stop_catch(void);

/* The signal that came; 0: none. */
int stop_came(void);

/* Ends the program as the signal would have. */
void stop_die(int signal);

#endif /* BERT_STOP_H */
