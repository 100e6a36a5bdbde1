/*
 * batch_builder.c - build the arrays of a batch, pack by pack.
 *
 * The packs of a batch may come from several files, so each pack is viewed
 * separately, and its channels are copied to their rows in the batch.  The
 * boundaries of all packs then form one ps_spans, from which the other arrays
 * are derived.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/batch_builder_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "data/error.h"

tr_builder *tr_builder_open(const tr_loader_options *options)
{
    tr_builder *f = calloc(1, sizeof *f);

    if (f == NULL)
        return NULL;
    f->options = *options;
    f->vocab_size = options->vocab_size;
    return f;
}

void tr_builder_free(tr_builder *f)
{
    if (f == NULL)
        return;
#define FREE(type, name, count) free(f->name);
    ARRAYS(FREE)
    free(f);
}

/* ---- Streams ---- */

static bool is_whole_number(ps_type type)
{
    return type != PS_F32 && type != PS_F64;
}

static ps_result find(channel *c, const ps_pack_info *info, ps_error *err)
{
    c->field = ps_pack_field(info, c->name);
    if (c->field == NULL ||
        (c->field->channel.kind == c->kind &&
         c->field->channel.count == 0 &&
         is_whole_number(c->field->channel.type)))
        return PS_OK;
    return tr_error(err, PS_ERR_ARGUMENT,
                    "channel %s must be an integer per %s",
                    c->name, c->kind == PS_PER_TOKEN ? "token" : "sequence");
}

/* BERT alone has pairs of segments; loss masks are for causal models. */
static bool is_used(const tr_builder *f, int which)
{
    if (which == TYPES || which == NSP)
        return f->options.types > 0;
    if (which == SOURCE)
        return f->options.sources;
    return which < MASKS || f->options.causal;
}

static ps_result find_channels(tr_builder *f, ps_error *err)
{
    const channel all[CHANNELS] = {
        [TOKENS] = {"tokens", PS_PER_TOKEN, 0, f->vocab_size, 0, NULL},
        [TYPES] = {"token_type_ids", PS_PER_TOKEN, 0, f->options.types, 0,
                   NULL},
        [LABELS] = {"labels", PS_PER_TOKEN, 0, f->vocab_size, PS_NO_LABEL,
                    NULL},
        [NSP] = {"next_sentence_label", PS_PER_SEQUENCE, -1, 2, -1, NULL},
        [SOURCE] = {"source", PS_PER_SEQUENCE, 0, TR_SOURCES_MAX, -1,
                    NULL},
        [MASKS] = {"loss_mask", PS_PER_TOKEN, 0, 2, 1, NULL},
        [MASKS + 1] = {"assistant_masks", PS_PER_TOKEN, 0, 2, 1, NULL},
        [MASKS + 2] = {"completion_mask", PS_PER_TOKEN, 0, 2, 1, NULL}};
    ps_result r = PS_OK;

    memcpy(f->channels, all, sizeof all);
    for (int i = 0; i < CHANNELS && r == PS_OK; i++)
        if (is_used(f, i))
            r = find(&f->channels[i], f->info, err);
    return r;
}

static ps_result check_labels(const tr_builder *f, ps_error *err)
{
    const ps_type type = f->channels[LABELS].field->channel.type;

    if (!f->options.causal && f->info->schema.labels == PS_LABELS_SHIFTED)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "its labels are shifted to the next token: use "
                        "tokcat --labels=aligned");
    if (type != PS_I32 && type != PS_I64)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "channel labels is %s, which cannot hold %d: use "
                        "tokcat --channel=labels:i32:%d",
                        ps_type_name(type), PS_NO_LABEL, PS_NO_LABEL);
    if (f->options.mask_share >= 0)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "has labels: --mask is for streams without labels");
    return PS_OK;
}

static ps_result check_next_tokens(const tr_builder *f, ps_error *err)
{
    if (f->options.mask_share >= 0)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "--mask is for models that predict masked tokens");
    return PS_OK;
}

/* Prepares masking, which needs the id of [MASK] from the stream's header. */
static ps_result use_masking(tr_builder *f, ps_error *err)
{
    const ps_schema *schema = &f->info->schema;
    const double share = f->options.mask_share;

    f->masking = (tr_masking){.share = share < 0 ? TR_MASKING_SHARE : share,
                              .vocab_size = f->vocab_size,
                              .mask_id = schema->special[PS_MASK],
                              .n_special = TR_MASKING_SPECIALS};
    memcpy(f->masking.special, schema->special, sizeof f->masking.special);
    if (f->masking.share > 0 && f->masking.mask_id >= f->vocab_size)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "has no labels, and declares no mask token below the "
                        "vocabulary size %" PRIu32 ", which BERT needs: use "
                        "tokcat --mask-id, or name another model with --init "
                        "or --config",
                        f->vocab_size);
    if (f->masking.share <= 0 && f->channels[NSP].field == NULL)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "nothing to learn: no labels, no next_sentence_label, "
                        "and --mask=0");
    return PS_OK;
}

ps_result tr_builder_use(tr_builder *f, const ps_pack_info *info, ps_error *err)
{
    ps_result r;

    if (f->info != NULL && f->capacity != info->capacity)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "has packs of %" PRIu32 " tokens, previous files have "
                        "%" PRIu32, info->capacity, f->capacity);
    /* Dense attention would attend to the gaps. */
    if (info->align > 1)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "its sequences are aligned to %" PRIu32
                        ": pack it without --align",
                        info->align);
    if (f->vocab_size == 0)
        f->vocab_size = info->schema.vocab_size;
    if (f->vocab_size == 0 || f->vocab_size > INT32_MAX)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "declares no vocabulary size: use --vocab");
    f->info = info;
    f->capacity = info->capacity;
    f->pad_id = info->pad_id < f->vocab_size ? info->pad_id : 0;
    r = find_channels(f, err);
    if (r == PS_OK && f->options.causal)
        r = check_next_tokens(f, err);
    if (r != PS_OK || (f->options.causal && f->channels[LABELS].field == NULL))
        return r;
    return f->channels[LABELS].field != NULL ? check_labels(f, err)
                                             : use_masking(f, err);
}

void tr_builder_set_shape(tr_builder *f, const tr_batch_shape *shape)
{
    f->capacity = shape->capacity;
    f->pad_id = shape->pad_id;
    f->vocab_size = shape->vocab_size;
}

tr_batch_shape tr_builder_shape(const tr_builder *f)
{
    return (tr_batch_shape){.capacity = f->capacity,
                            .pad_id = f->pad_id,
                            .vocab_size = f->vocab_size,
                            .types = f->options.types};
}

/* ---- Memory ---- */

static bool grow(void *array, uint64_t count, size_t size)
{
    void *old, *more;

    if (count > SIZE_MAX / size)
        return false;
    memcpy(&old, array, sizeof old);
    more = realloc(old, (size_t)count * size);
    if (more == NULL)
        return false;
    memcpy(array, &more, sizeof more);
    return true;
}

/* At worst, every row is a sequence, and every pack has a dummy sequence. */
static bool grow_all(tr_builder *f, uint64_t packs, uint64_t capacity)
{
    const uint64_t rows = packs * capacity;
#define GROW(type, name, count) &&grow(&f->name, count, sizeof *f->name)

    return true ARRAYS(GROW);
}

ps_result tr_builder_grow(tr_builder *f, ps_error *err)
{
    const uint64_t packs = f->room == 0 ? 1 : (uint64_t)f->room * 2;

    if (packs * f->capacity > INT32_MAX)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "the batch has too many tokens");
    if (!grow_all(f, packs, f->capacity))
        return tr_error(err, PS_ERR_MEMORY, "no memory for a batch");
    f->room = (uint32_t)packs;
    return PS_OK;
}

/* ---- Packs ---- */

static ps_result check_whole(const tr_builder *f, const ps_pack *pack,
                             ps_error *err)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(f->info, pack, i);

        if (piece.n_tok != piece.seq_len)
            return tr_error(err, PS_ERR_ARGUMENT,
                            "pack %" PRIu64
                            " has a piece of sequence %" PRIu64
                            ": masked language models need whole sequences",
                            pack->index, piece.id);
    }
    return PS_OK;
}

/* Copies a channel and checks its values.  Padding is ignored. */
ps_result tr_builder_take(const tr_builder *f, const ps_pack *pack,
                         const ps_spans *spans, const channel *c, int32_t *to,
                         ps_error *err)
{
    const uint32_t n = c->kind == PS_PER_TOKEN ? pack->n_tok : pack->n_seq;
    ps_result r = PS_OK;

    if (c->field != NULL)
        r = ps_spans_gather(spans, f->info, pack->row, pack->sequences,
                            c->field, PS_I64, f->wide, err);
    for (uint32_t i = 0; i < n && r == PS_OK; i++) {
        int64_t value = c->field == NULL ? c->without : f->wide[i];

        if ((value < c->min || value >= c->end) && value != c->without)
            r = tr_error(err, PS_ERR_RANGE,
                         "pack %" PRIu64 ": %s of %" PRId64
                         ", must be from %" PRId64 " to %" PRId64,
                         pack->index, c->name, value, c->min, c->end - 1);
        to[i] = (int32_t)value;
    }
    return r;
}

/* Copies all channels to the first free rows. */
static ps_result take_channels(const tr_builder *f, const ps_pack *pack,
                               const ps_spans *spans, ps_error *err)
{
    const uint32_t row = f->spans.n_rows;
    int32_t *const to[MASKS] = {[TOKENS] = f->token + row,
                                   [TYPES] = f->type + row,
                                   [LABELS] = f->label + row,
                                   [NSP] = f->nsp_label + f->spans.n_seq,
                                   [SOURCE] = f->source + f->spans.n_seq};
    ps_result r = PS_OK;

    for (int i = 0; i < MASKS && r == PS_OK; i++)
        r = tr_builder_take(f, pack, spans, &f->channels[i], to[i], err);
    return r;
}

void tr_builder_pad(const tr_builder *f, uint32_t n_tok)
{
    const uint32_t end = f->spans.n_rows + f->capacity;

    for (uint32_t i = f->spans.n_rows + n_tok; i < end; i++) {
        f->token[i] = (int32_t)f->pad_id;
        f->type[i] = 0;
    }
}

/* Appends the boundaries of `spans`. */
static void add_spans(tr_builder *f, const ps_spans *spans)
{
    ps_spans *all = &f->spans;

    for (uint32_t i = 0; i <= spans->n_spans; i++)
        f->cu[all->n_spans + i] += (int32_t)all->n_rows;
    f->n_seqs[all->n_packs] = spans->n_seq;
    if (all->max_seqlen < spans->max_seqlen)
        all->max_seqlen = spans->max_seqlen;
    all->n_packs++;
    all->n_seq += spans->n_seq;
    all->n_spans += spans->n_spans;
    all->n_rows += spans->n_rows;
}

void tr_builder_begin(tr_builder *f)
{
    f->spans = (ps_spans){.view = PS_VIEW_GHOST};
    f->count = (tr_batch_counts){0};
    f->totals = (tr_batch_totals){0};
}

/* Counts the targets of the pack that is being added. */
static void count_targets(tr_builder *f, const ps_pack *pack)
{
    const int32_t *const label = f->label + f->spans.n_rows;
    const int32_t *const nsp = f->nsp_label + f->spans.n_seq;

    for (uint32_t i = 0; i < pack->n_tok; i++)
        f->totals.masked += label[i] != PS_NO_LABEL;
    for (uint32_t i = 0; i < pack->n_seq; i++)
        f->totals.labelled += nsp[i] >= 0;
    f->totals.sequences += pack->n_seq;
}

ps_result tr_builder_add(tr_builder *f, const ps_pack *pack, uint64_t key,
                         ps_error *err)
{
    ps_spans spans;
    ps_result r = PS_OK;

    if (f->spans.n_packs == f->room)
        r = tr_builder_grow(f, err);
    if (r == PS_OK)
        r = f->options.causal ? PS_OK : check_whole(f, pack, err);
    if (r == PS_OK)
        r = ps_pack_view(f->info, pack, PS_VIEW_GHOST,
                         f->cu + f->spans.n_spans, NULL, &spans, err);
    if (r == PS_OK)
        r = take_channels(f, pack, &spans, err);
    if (r != PS_OK)
        return r;
    r = tr_builder_label(f, pack, &spans, key, err);
    if (r != PS_OK)
        return r;
    tr_builder_pad(f, pack->n_tok);
    count_targets(f, pack);
    f->pack_row[f->spans.n_packs] = f->spans.n_rows;
    add_spans(f, &spans);
    f->count.tokens += pack->n_tok;
    f->count.packs = f->spans.n_packs;
    f->count.sequences = f->spans.n_seq;
    f->count.rows = f->spans.n_rows;
    return PS_OK;
}

tr_batch_counts tr_builder_counts(const tr_builder *f)
{
    return f->count;
}

/* ---- Arrays derived from all packs ---- */

static uint32_t list_targets(const tr_builder *f)
{
    const uint32_t n = ps_spans_target_rows(&f->spans, f->label, PS_NO_LABEL,
                                            f->mlm_row, f->mlm_seq);

    for (uint32_t i = 0; i < n; i++)
        f->mlm_label[i] = f->label[f->mlm_row[i]];
    return n;
}

/* ps_spans_weights returns a float for each row, even if `real` is double. */
static void weigh_targets(const tr_builder *f, const tr_batch_totals *all)
{
    const uint32_t n = f->batch.n_mlm;
    uint32_t end;

    for (uint32_t first = 0; first < n; first = end) {
        double among = (double)all->masked;

        end = first;
        while (end < n && f->mlm_seq[end] == f->mlm_seq[first])
            end++;
        if (f->options.loss == TR_LOSS_PER_SEQUENCE)
            among = (double)(end - first) * (double)all->sequences;
        for (uint32_t i = first; i < end; i++)
            f->mlm_weight[i] = (real)(1 / among);
    }
}

static void weigh_sequences(const tr_builder *f, const tr_batch_totals *all)
{
    for (uint32_t i = 0; i < f->spans.n_seq; i++)
        f->nsp_weight[i] =
            (real)(f->nsp_label[i] < 0 ? 0 : 1 / (double)all->labelled);
}

static tr_batch show(const tr_builder *f, uint32_t n_mlm)
{
    return (tr_batch){.n_packs = f->spans.n_packs,
                      .capacity = f->capacity,
                      .n_rows = f->spans.n_rows,
                      .token = f->token,
                      .type = f->type,
                      .position = f->position,
                      .segment = f->segment,
                      .place = f->place,
                      .n_spans = f->spans.n_spans,
                      .max_span = f->spans.max_seqlen,
                      .cu = f->cu,
                      .n_seq = f->spans.n_seq,
                      .cls_row = f->cls_row,
                      .nsp_label = f->nsp_label,
                      .source = f->source,
                      .nsp_weight = f->nsp_weight,
                      .n_mlm = n_mlm,
                      .mlm_row = f->mlm_row,
                      .mlm_label = f->mlm_label,
                      .mlm_seq = f->mlm_seq,
                      .mlm_weight = f->mlm_weight};
}

/* Derives the other arrays from boundaries and labels. */
static tr_batch lay_out(tr_builder *f)
{
    f->spans.n_seqs = f->n_seqs;
    f->spans.cu = f->cu;
    ps_spans_positions(&f->spans, PS_GHOST_COUNTS, f->position);
    ps_spans_segment_ids(&f->spans, f->segment);
    ps_spans_first_rows(&f->spans, -1, f->cls_row);
    for (uint32_t i = 0; i < f->spans.n_rows; i++)
        f->place[i] = (int32_t)(f->pack_row[i / f->capacity]
                                + i % f->capacity);
    return show(f, list_targets(f));
}

tr_batch_totals tr_builder_totals(const tr_builder *f)
{
    return f->totals;
}

/* If this rank has no packs, the first boundary has not been written yet. */
void tr_builder_finish_among(tr_builder *f, const tr_batch_totals *all)
{
    f->cu[f->spans.n_spans] = (int32_t)f->spans.n_rows;
    f->batch = lay_out(f);
    weigh_targets(f, all);
    weigh_sequences(f, all);
    f->count.targets = (uint32_t)(all->masked + all->labelled);
}

void tr_builder_finish(tr_builder *f)
{
    tr_builder_finish_among(f, &f->totals);
}

/* ---- Selection ---- */

/* A position in the batch, or the size of a pack. */
typedef struct extent {
    uint32_t pack;
    uint32_t row;
    uint32_t span;
    uint32_t seq;
    uint32_t target;
} extent;

static extent extent_at(const tr_builder *f, extent at)
{
    const int64_t end = (int64_t)at.row + f->capacity;
    const uint32_t seqs = f->n_seqs[at.pack];
    extent n = {.pack = 1,
                .row = f->capacity,
                .span = seqs + 1, /* includes the dummy sequence */
                .seq = seqs};

    while (at.target + n.target < f->batch.n_mlm &&
           f->mlm_row[at.target + n.target] < end)
        n.target++;
    return n;
}

static extent behind(extent at, extent n)
{
    return (extent){at.pack + n.pack, at.row + n.row, at.span + n.span,
                    at.seq + n.seq, at.target + n.target};
}

#define MOVE(array, to, from, n) \
    memmove((array) + (to), (array) + (from), (n) * sizeof *(array))

static void move_pack(tr_builder *f, extent to, extent from, extent n)
{
    MOVE(f->token, to.row, from.row, n.row);
    MOVE(f->type, to.row, from.row, n.row);
    MOVE(f->label, to.row, from.row, n.row);
    MOVE(f->nsp_label, to.seq, from.seq, n.seq);
    MOVE(f->source, to.seq, from.seq, n.seq);
    MOVE(f->nsp_weight, to.seq, from.seq, n.seq);
    MOVE(f->mlm_weight, to.target, from.target, n.target);
    for (uint32_t i = 0; i < n.span; i++)
        f->cu[to.span + i] = f->cu[from.span + i] - (int32_t)from.row
                             + (int32_t)to.row;
    f->n_seqs[to.pack] = n.seq;
    f->pack_row[to.pack] = from.row;
}

/* Digest of the arrays from which all others are derived. */
static uint64_t digest_of(const tr_builder *f)
{
    const tr_batch *const b = &f->batch;
    const struct {
        const int32_t *array;
        size_t n;
    } all[] = {{f->cu, b->n_spans + 1},
               {f->token, b->n_rows},
               {f->type, b->n_rows},
               {f->mlm_row, b->n_mlm},
               {f->mlm_label, b->n_mlm},
               {f->nsp_label, b->n_seq}};
    uint64_t digest = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        digest = XXH3_64bits_withSeed(all[i].array,
                                      all[i].n * sizeof *all[i].array, digest);
    return digest;
}

void tr_builder_select(tr_builder *f, const uint32_t *ranks, uint32_t rank)
{
    extent from = {0}, to = {0};

    f->count.digest = digest_of(f);
    while (from.pack < f->batch.n_packs) {
        const extent n = extent_at(f, from);

        if (ranks[from.pack] == rank) {
            move_pack(f, to, from, n);
            to = behind(to, n);
        }
        from = behind(from, n);
    }
    f->cu[to.span] = (int32_t)to.row;
    f->spans.n_packs = to.pack;
    f->spans.n_rows = to.row;
    f->spans.n_spans = to.span;
    f->spans.n_seq = to.seq;
    f->batch = lay_out(f);
}

const tr_batch *tr_builder_batch(const tr_builder *f)
{
    return &f->batch;
}
