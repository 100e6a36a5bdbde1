/*
 * tuning.h - the constants that affect which packs are made.
 *
 * Each comment names the unit and, if known, the range of values that are
 * nearly as good.  In brackets: the percentage points of efficiency lost with
 * half the value and with twice the value, on average over the streams of
 * tests/bench/ablation.sh (W = 1,024, 100,000 sequences), which repeats the
 * measurement.  A negative number means that the other value is better there.
 * These streams are random, have one window size and no histogram to learn
 * from, so some constants matter only elsewhere.
 *
 * Constants that only keep numbers in range are defined where they are used.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_TUNING_H
#define LIB_ENGINE_TUNING_H

/*
 * ---- Units of length (dual_prices.c, score.c) ----
 *
 * Tables of prices and values use coarse units of length.  While at most
 * TUNE_FEW distinct lengths have arrived, they use fine units, so that sums of
 * lengths are exact.
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
 * The window plus TUNE_HORIZON * sqrt(W) * variation records distributed like
 * the stream so far, which outweigh the randomness of a small window.  Older
 * arrivals count less.  A histogram to learn from is dropped if the first
 * window differs too much from it.
 */
/* records over sqrt(W); 64 to 256 [-0.0021 +0.0024] */
#define TUNE_HORIZON 128.0
/* windows; 4 to 16 [+0.0008 -0.0012] */
#define TUNE_VARIATION_WINDOWS 8
/* windows until counts are halved [+0.0000 +0.0000] */
#define TUNE_MEMORY_WINDOWS 512
/* windows that a histogram counts for [+0.0000 +0.0000] */
#define TUNE_EXPECTED_WINDOWS 64.0
/* multiple of random variation [+0.0000 +0.0000] */
#define TUNE_MISFIT 8.0

/*
 * ---- Prices (dual_prices.c, price_cuts.c) ----
 *
 * The prices in use are a mean of the cuts that are nearly the highest for the
 * demand, plus a small part proportional to length.
 */
/*
 * tolerance below the highest cut, over sqrt(W); 0.1 to 0.4 [-0.0034 -0.0061]
 */
#define TUNE_TOLERANCE 0.2
/* cuts kept; from 9 [+0.0005 +0.0000] */
#define TUNE_CUTS 18
/* part of a price; 0.02 to 0.1 [-0.0009 +0.0000] */
#define TUNE_LINEAR 0.05

/*
 * ---- Solving for a cut (dual_prices.c) ----
 *
 * The first cut is solved for after one window.  The interval to the next is
 * halved if the new cut was above all others by TUNE_NEWS of the tolerance, and
 * doubled otherwise.  Work is counted in additions; a few 10^9 take a second.
 * TUNE_FIRST_WORK additions are allowed at first, and more with each record.
 * Solving can stop at a gap, since a small window gains nothing from more
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
/* part of the packs, over W; limited by the next two [-0.0023 +0.0002] */
#define TUNE_GAP 1.0
/* part of the packs [+0.0000 +0.0000] */
#define TUNE_MIN_GAP 1e-4
/* part of the packs [+0.0006 +0.0000] */
#define TUNE_MAX_GAP 1e-3

/*
 * ---- Age (score.c, policy_auto.c) ----
 *
 * In the time of one window, a sequence gains a fraction of the score of a full
 * pack, for several windows.  After that it leads the next pack.
 */
/* full pack's score over the gain; 125 to 500 [-0.0031 -0.0009] */
#define TUNE_AGE 250
/* windows; from 2 [+0.0000 +0.0000] */
#define TUNE_MAX_AGE 8
/* windows, less 1 %; waiting for longer gains nothing [+0.0000 +0.0000] */
#define TUNE_URGENT_WINDOWS 4
/* a sequence is urgent when this part of its allowed delay is left: 1 % */
#define TUNE_URGENT_PART 100
/* windows, if no delay was chosen [+0.0000 +0.0000] */
#define TUNE_USUAL_DELAY 2

/*
 * ---- Balance (balance.c, score.c) ----
 *
 * A length whose share of the window is twice its share of the stream gains a
 * fraction of a pack's score.  A constant is added to both shares, so that rare
 * lengths do not get large weights.  If prices are proportional to length,
 * nothing else preserves the mixture of lengths, so the weight is greater:
 * without it, bursty or drifting streams lose up to 0.3 points.
 */
/* full pack's score over the gain; 32 to 128 [-0.0017 -0.0030] */
#define TUNE_BALANCE 64
/* the same if prices are nearly linear; 8 to 32 [-0.0008 +0.0008] */
#define TUNE_BALANCE_STRONG 16
/* mean distance from linear prices [-0.0004 +0.0000] */
#define TUNE_NEARLY_LINEAR 1e-3
/* 1 / value is added to a share; 5 to 20 [-0.0014 -0.0031] */
#define TUNE_MIN_SHARE 10
/* windows that shares are a mean of; 3 to 12 [-0.0059 +0.0006] */
#define TUNE_SHARE_WINDOWS 6
/* knots are relearned at this many times the records [+0.0009 -0.0013] */
#define TUNE_BALANCE_GROWTH 4
/* or after this many more windows [-0.0007 -0.0003] */
#define TUNE_BALANCE_WINDOWS 64

/*
 * ---- Building a pack (pack_builder.c, value.c) ----
 *
 * If packs hold many sequences, the oldest are placed in bulk until a capacity
 * of several mean lengths and 1 / TUNE_BULK_LEAVES of the depth are left.
 * Sequences longer than L / TUNE_BULK_PART are skipped.  The value function
 * chooses the next lengths, up to one or two that fill the rest exactly.
 */
/* mean lengths; from 4 [+0.0255 -0.0015] */
#define TUNE_BULK_MEANS 7
/* of the depth; 1 to 4 [-0.0014 -0.0001] */
#define TUNE_BULK_LEAVES 2
/* of L; 2 to 8 [-0.0010 -0.0014] */
#define TUNE_BULK_PART 4
/* mean lengths of capacity that a pair may fill; from 3 [+0.0430 -0.0071] */
#define TUNE_PAIR_MEANS 3
/* full pack's score over what an exact end may lack; 100 to 400
   [+0.0039 -0.0042] */
#define TUNE_EXACT 200
/* lengths among which the last is sought; from 12 [-0.0004 +0.0001] */
#define TUNE_LAST_TRIES 24
/* rows of the value function; a greater depth counts as unlimited; with 8,
   depths from 10 lose up to 15 points if half the sequences are very short
   [+0.0000 +0.0000] */
#define TUNE_LEVELS 32

/*
 * ---- Choosing a pack (policy_auto.c) ----
 *
 * Packs are built with several leaders until one is good: its score is near the
 * mean of recent packs.  Scores and values are refreshed several times per
 * window, but less often while windows differ by little more than chance.  The
 * depth counts as ample, or as unlimited, if it exceeds the number of sequences
 * in a full pack by that percentage.
 */
/* first sequences; 3 to 12 [+0.0016 -0.0056] */
#define TUNE_LEADERS 6
/* full pack's score over what a good one may lack; 250 to 1000
   [-0.0035 -0.0030] */
#define TUNE_GOOD 500
/* packs in that mean [+0.0005 -0.0019] */
#define TUNE_MEAN_PACKS 128
/* times in a window; 8 costs 0.01 [+0.0049 -0.0048] */
#define TUNE_REFRESH 16
/* records, at least [+0.0000 +0.0000] */
#define TUNE_REFRESH_MIN 32
/* variation below which the interval doubles, [-0.0048 +0.0000] */
#define TUNE_STEADY 2.0
/* up to this many records [+0.0000 +0.0000] */
#define TUNE_STEADY_MAX 256
/* percent [+0.0000 +0.0001] */
#define TUNE_AMPLE 25
/* percent [+0.0000 +0.0000] */
#define TUNE_UNLIMITED 60

/*
 * ---- Best fit instead of prices (shadow.c, pack_builder.c) ----
 *
 * Best fit is used while it exceeds the bound by at most TUNE_EXCESS packs per
 * window of the stream, plus TUNE_EXCESS_OUT.  Once rejected, it must stay
 * TUNE_EXCESS_IN below that for several windows, because it would take over a
 * window of sequences that prices left.  The initial guess is best fit
 * decreasing of all arrivals.  With few distinct lengths, prices lose little,
 * so TUNE_EXCESS and TUNE_EXCESS_OUT are multiplied by TUNE_EXCESS_FEW.
 *
 * A pack starts with one of the oldest sequences, chosen so that best fit
 * leaves the least capacity unused.  Each step to a younger sequence must gain
 * TUNE_FIRST_AGE / 2^20 of L.
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
/* part of the bound [+0.0000 +0.0007] */
#define TUNE_START_PART 1.5e-3
/* sequences; 64 to 256 [-0.0000 +0.0000] */
#define TUNE_FIRSTS 128
/* at most 1 / value of the window [+0.0000 -0.0000] */
#define TUNE_FIRST_PART 8
/* 5 to 40 [+0.0001 +0.0000] */
#define TUNE_FIRST_AGE 10

#endif
