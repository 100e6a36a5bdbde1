/*
 * tuning.h - the constants that decide which packs are made.
 *
 * Each has its unit and, where known, the range of values that are nearly as
 * good.  In brackets: the points of efficiency that half the value and twice
 * the value cost, on average over the streams of tests/bench/ablation.sh
 * (W = 1,024, 100,000 sequences), which repeats the measurement.  Negative:
 * the other value is better there.  These streams are random, of one window
 * size, and learn from nothing: some constants matter in others only.
 *
 * Constants that only keep numbers in range stay where they are used.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_TUNING_H
#define LIB_ENGINE_TUNING_H

/*
 * ---- Units of length (dual_prices.c, score.c) ----
 *
 * Prices and values are by length in coarse units. While at most TUNE_FEW
 * different lengths came, units are fine, so that sums of them are exact.
 */
/* units; 128 to 512 [+0.0032 +0.0147] */
#define TUNE_COARSE_UNITS 256
/* units; at most 2,048 (units.h) [-0.0041 +0.0012] */
#define TUNE_FINE_UNITS 2048
/* lengths; 12 to 64 [+0.0000 -0.0002] */
#define TUNE_FEW 32

/*
 * ---- The demand that is priced (dual_prices.c) ----
 *
 * It is the window, and TUNE_HORIZON * sqrt(W) * variation records of the
 * stream so far: enough to outweigh chance in a small window. Counts fade. A
 * histogram to learn from is dropped if the first window is too unlike it.
 */
/* records over sqrt(W); 64 to 256 [-0.0021 +0.0024] */
#define TUNE_HORIZON 128.0
/* windows; 4 to 16 [+0.0008 -0.0012] */
#define TUNE_VARIATION_WINDOWS 8
/* windows until counts are halved [+0.0000 +0.0000] */
#define TUNE_MEMORY_WINDOWS 512
/* windows that a histogram counts for [+0.0000 +0.0000] */
#define TUNE_EXPECTED_WINDOWS 64.0
/* times what chance explains [+0.0000 +0.0000] */
#define TUNE_MISFIT 8.0

/*
 * ---- Prices (dual_prices.c, price_cuts.c) ----
 *
 * The prices in use are a mean of the cuts that are nearly the highest for
 * the demand, and a small part is for fullness alone.
 */
/* part below the highest, over sqrt(W); 0.1 to 0.4 [-0.0034 -0.0061] */
#define TUNE_TOLERANCE 0.2
/* cuts kept; from 9 [+0.0005 +0.0000] */
#define TUNE_CUTS 18
/* part of a price; 0.02 to 0.1 [-0.0009 +0.0000] */
#define TUNE_LINEAR 0.05

/*
 * ---- Solving for a cut (dual_prices.c) ----
 *
 * A cut is learned after a window, and then after an interval, which is
 * halved if the cut was higher than all others by TUNE_NEWS of what counts
 * as near, else doubled. Work is counted in additions, of which a few 10^9
 * take a second: there are TUNE_FIRST_WORK to begin with and more for each
 * record. Solving may stop at a gap, since a small window cannot use more
 * precise prices.
 */
/* of the tolerance; 0.1 to 0.5 [-0.0023 -0.0030] */
#define TUNE_NEWS 0.25
/* windows; 8 to 64 [-0.0034 -0.0001] */
#define TUNE_MAX_INTERVAL 32
/* additions [+0.0000 +0.0000] */
#define TUNE_FIRST_WORK 3e7
/* additions; from 100 [+0.0000 +0.0000] */
#define TUNE_WORK_PER_RECORD 200.0
/* additions that must be left for a cut [+0.0000 +0.0000] */
#define TUNE_MIN_WORK 2e6
/* additions for one cut: some hundredths of a second [+0.0000 +0.0000] */
#define TUNE_MAX_WORK 2.4e7
/* part of the packs, over W, within these two [-0.0023 +0.0002] */
#define TUNE_GAP 1.0
/* part of the packs [+0.0000 +0.0000] */
#define TUNE_MIN_GAP 1e-4
/* part of the packs [+0.0006 +0.0000] */
#define TUNE_MAX_GAP 1e-3

/*
 * ---- Age (score.c, policy_auto.c) ----
 *
 * While as many records come as the window has, a sequence gains a part of
 * the score of a full pack, up to some windows. Then it goes into the next
 * pack.
 */
/* packs over the gain; 125 to 500 [-0.0031 -0.0009] */
#define TUNE_AGE 250
/* windows; from 2 [+0.0000 +0.0000] */
#define TUNE_MAX_AGE 8
/* windows, less 1 %; waiting for longer gains nothing [+0.0000 +0.0000] */
#define TUNE_URGENT_WINDOWS 4
/* the same where no delay was chosen [+0.0000 +0.0000] */
#define TUNE_USUAL_DELAY 2

/*
 * ---- Balance (balance.c, score.c) ----
 *
 * Lengths of which the window has twice the share that the stream has, if
 * that is large, gain a part of a pack's score. Shares count as more than
 * they are, so that rare lengths get no great weight. Where prices are
 * linear nothing else keeps the mixture of lengths: the weight is greater
 * (streams in bursts, or that drift, lose up to 0.3 points without).
 */
/* packs over the gain; 32 to 128 [-0.0017 -0.0030] */
#define TUNE_BALANCE 64
/* the same where prices are nearly linear; 8 to 32 [-0.0008 +0.0008] */
#define TUNE_BALANCE_STRONG 16
/* mean distance from linear prices [-0.0004 +0.0000] */
#define TUNE_NEARLY_LINEAR 1e-3
/* one in so many is added to a share; 5 to 20 [-0.0014 -0.0031] */
#define TUNE_MIN_SHARE 10
/* windows that shares are a mean of; 3 to 12 [-0.0059 +0.0006] */
#define TUNE_SHARE_WINDOWS 6
/* times as many records, or [+0.0009 -0.0013] */
#define TUNE_BALANCE_GROWTH 4
/* windows more, until the knots are learned again [-0.0007 -0.0003] */
#define TUNE_BALANCE_WINDOWS 64

/*
 * ---- Building a pack (pack_builder.c, value.c) ----
 *
 * Where a pack takes many, the oldest are placed in bulk until some mean
 * lengths of room are left, and one in TUNE_BULK_LEAVES places, but none
 * longer than one in TUNE_BULK_PART of L. A walk along the value function
 * follows, and ends with one or two lengths that fill the rest exactly.
 */
/* mean lengths; from 4 [+0.0255 -0.0015] */
#define TUNE_BULK_MEANS 7
/* of the depth; 1 to 4 [-0.0014 -0.0001] */
#define TUNE_BULK_LEAVES 2
/* of L; 2 to 8 [-0.0010 -0.0014] */
#define TUNE_BULK_PART 4
/* mean lengths of room that a pair may fill; from 3 [+0.0430 -0.0071] */
#define TUNE_PAIR_MEANS 3
/* packs over what an exact end may lack; 100 to 400 [+0.0039 -0.0042] */
#define TUNE_EXACT 200
/* lengths among which the last is sought; from 12 [-0.0004 +0.0001] */
#define TUNE_LAST_TRIES 24
/* places told apart; more count as any number [+0.0183 +0.0000] */
#define TUNE_LEVELS 8

/*
 * ---- Choosing a pack (policy_auto.c) ----
 *
 * Packs are built behind some first sequences until one is good: it has
 * nearly the mean score of recent packs. Scores and values are refreshed a
 * few times in a window; less often while windows differ by little more than
 * chance. Depth is ample, or no limit, where full packs would leave that
 * much of it, in percent of what they use.
 */
/* first sequences; 3 to 12 [+0.0016 -0.0056] */
#define TUNE_LEADERS 6
/* packs over what a good one may lack; 250 to 1000 [-0.0035 -0.0030] */
#define TUNE_GOOD 500
/* packs in that mean [+0.0005 -0.0019] */
#define TUNE_MEAN_PACKS 128
/* times in a window; 8 costs 0.01 [+0.0049 -0.0048] */
#define TUNE_REFRESH 16
/* records, at least [+0.0000 +0.0000] */
#define TUNE_REFRESH_MIN 32
/* variation below which half as often will do, [-0.0048 +0.0000] */
#define TUNE_STEADY 2.0
/* up to so many records apart [+0.0000 +0.0000] */
#define TUNE_STEADY_MAX 256
/* percent [+0.0000 +0.0001] */
#define TUNE_AMPLE 25
/* percent [+0.0000 +0.0000] */
#define TUNE_UNLIMITED 60

/*
 * ---- Best fit in its place (shadow.c, pack_builder.c) ----
 *
 * Best fit is used while it makes at most TUNE_EXCESS packs more than the
 * bound in a window of the stream, and TUNE_EXCESS_OUT more in all. Once
 * given up, it has to stay below by TUNE_EXCESS_IN for some windows: it
 * starts in a window full of what the prices left. At the start best fit
 * decreasing on what came stands for it. Where few lengths came, prices lose
 * little: TUNE_EXCESS and TUNE_EXCESS_OUT are multiplied by TUNE_EXCESS_FEW.
 *
 * The first sequence of a pack is one of the oldest: the one behind which
 * best fit leaves least, where one place younger has to gain TUNE_FIRST_AGE
 * / 2^20 of L.
 */
/* sequences in a pack, on average; 2.1 to 2.4 [+0.0172 +0.0061] */
#define TUNE_PER_PACK 2.2
/* packs; 1 to 1.2 [+0.0017 +0.0065] */
#define TUNE_EXCESS 1.15
/* packs; 4 to 16 [-0.0006 +0.0060] */
#define TUNE_EXCESS_OUT 6.0
/* part of both; 0.005 to 0.05 [+0.0000 +0.0000] */
#define TUNE_EXCESS_FEW 0.02
/* packs [+0.0000 +0.0000] */
#define TUNE_EXCESS_IN 2.0
/* windows; 2 to 12 [+0.0000 +0.0009] */
#define TUNE_IN_WINDOWS 8
/* windows after which the excess is halved [+0.0000 +0.0000] */
#define TUNE_EXCESS_WINDOWS 64
/* packs above the bound, and [+0.0001 +0.0007] */
#define TUNE_START_EXCESS 1.2
/* part of it [+0.0000 +0.0007] */
#define TUNE_START_PART 1.5e-3
/* sequences; 64 to 256 [-0.0000 +0.0000] */
#define TUNE_FIRSTS 128
/* at most one in so many of the window [+0.0000 -0.0000] */
#define TUNE_FIRST_PART 8
/* 5 to 40 [+0.0001 +0.0000] */
#define TUNE_FIRST_AGE 10

#endif
