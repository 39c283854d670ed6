/* A generation from an encoder over a lossy hop, a recoder and another lossy hop to a decoder; and
 * every misuse that the library can tell. Exits with 0 if all is as it should be. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncmesh.h"

enum { K = 16, SIZE = 100 };

/* Pseudorandom losses: the same in each run. */
static unsigned state = 1;
static bool lost(void) {
    state = state * 1103515245u + 12345u;
    return (state >> 16) % 10 < 3;
}

static void transfer(uint8_t field) {
    uint8_t data[K * SIZE], back[K * SIZE], symbol[SIZE];
    uint8_t coefficients[K], payload[SIZE];
    struct NcmeshEncoder *encoder = NULL;
    struct NcmeshRecoder *recoder = NULL;
    struct NcmeshDecoder *decoder = NULL;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + i / 251);

    assert(ncmesh_encoder_new(field, K, SIZE, 7, &encoder) == NCMESH_STATUS_OK);
    assert(ncmesh_recoder_new(field, K, SIZE, 8, &recoder) == NCMESH_STATUS_OK);
    assert(ncmesh_decoder_new(field, K, SIZE, &decoder) == NCMESH_STATUS_OK);
    assert(ncmesh_encoder_load(encoder, data, sizeof data) == NCMESH_STATUS_OK);
    assert(ncmesh_recoder_recode(recoder, coefficients, K, payload, SIZE) ==
           NCMESH_STATUS_NOT_READY);
    assert(ncmesh_decoder_decode(decoder, back, sizeof back) == NCMESH_STATUS_NOT_READY);

    int sent = 0;
    while (ncmesh_decoder_rank(decoder) < K) {
        assert(++sent < 1000);
        bool innovative = false;
        assert(ncmesh_encoder_draw(encoder, coefficients, K, payload, SIZE) == NCMESH_STATUS_OK);
        if (!lost()) {
            assert(ncmesh_recoder_absorb(recoder, coefficients, K, payload, SIZE, &innovative) ==
                   NCMESH_STATUS_OK);
        }
        if (ncmesh_recoder_rank(recoder) == 0) continue;
        assert(ncmesh_recoder_recode(recoder, coefficients, K, payload, SIZE) == NCMESH_STATUS_OK);
        if (!lost()) {
            assert(ncmesh_decoder_absorb(decoder, coefficients, K, payload, SIZE, NULL) ==
                   NCMESH_STATUS_OK);
        }
    }
    assert(ncmesh_decoder_decode(decoder, back, sizeof back) == NCMESH_STATUS_OK);
    assert(memcmp(data, back, sizeof data) == 0);
    assert(ncmesh_decoder_symbol(decoder, 3, symbol, SIZE) == NCMESH_STATUS_OK);
    assert(memcmp(data + 3 * SIZE, symbol, SIZE) == 0);
    assert(ncmesh_decoder_symbol(decoder, K, symbol, SIZE) == NCMESH_STATUS_NOT_READY);
    assert(ncmesh_decoder_symbol(decoder, 3, symbol, SIZE - 1) == NCMESH_STATUS_LENGTH);
    assert(ncmesh_decoder_decode(decoder, back, sizeof back - 1) == NCMESH_STATUS_LENGTH);

    /* A packet whose coding vector is a unit vector is the source symbol. */
    memset(coefficients, 0, K);
    coefficients[5] = 1;
    assert(ncmesh_encoder_encode(encoder, coefficients, K, payload, SIZE) == NCMESH_STATUS_OK);
    assert(memcmp(payload, data + 5 * SIZE, SIZE) == 0);

    ncmesh_encoder_free(encoder);
    ncmesh_recoder_free(recoder);
    ncmesh_decoder_free(decoder);
}

static void misuse(void) {
    uint8_t coefficients[K] = {0}, payload[SIZE] = {0};
    struct NcmeshEncoder *encoder = (struct NcmeshEncoder *)&state;
    struct NcmeshDecoder *decoder = NULL;
    assert(ncmesh_encoder_new(3, K, SIZE, 0, &encoder) == NCMESH_STATUS_SHAPE);
    assert(encoder == NULL);
    assert(ncmesh_encoder_new(8, 0, SIZE, 0, &encoder) == NCMESH_STATUS_SHAPE);
    assert(ncmesh_encoder_new(8, 256, SIZE, 0, &encoder) == NCMESH_STATUS_SHAPE);
    assert(ncmesh_encoder_new(8, K, 0, 0, &encoder) == NCMESH_STATUS_SHAPE);
    assert(ncmesh_encoder_new(8, K, 65536, 0, &encoder) == NCMESH_STATUS_SHAPE);
    assert(ncmesh_encoder_new(8, K, SIZE, 0, NULL) == NCMESH_STATUS_NULL);
    assert(ncmesh_encoder_load(NULL, payload, SIZE) == NCMESH_STATUS_NULL);
    assert(ncmesh_decoder_rank(NULL) == 0);
    ncmesh_encoder_free(NULL);
    ncmesh_recoder_free(NULL);
    ncmesh_decoder_free(NULL);

    assert(ncmesh_encoder_new(NCMESH_FIELD_GF16, K, SIZE, 0, &encoder) == NCMESH_STATUS_OK);
    assert(ncmesh_decoder_new(NCMESH_FIELD_GF16, K, SIZE, &decoder) == NCMESH_STATUS_OK);
    assert(ncmesh_encoder_load(encoder, NULL, 1) == NCMESH_STATUS_NULL);
    assert(ncmesh_encoder_load(encoder, NULL, 0) == NCMESH_STATUS_OK);
    assert(ncmesh_encoder_load(encoder, payload, SIZE_MAX) == NCMESH_STATUS_LENGTH);
    assert(ncmesh_encoder_draw(encoder, coefficients, K - 1, payload, SIZE) ==
           NCMESH_STATUS_LENGTH);
    assert(ncmesh_encoder_draw(encoder, coefficients, K, payload, SIZE - 1) ==
           NCMESH_STATUS_LENGTH);
    for (int i = 0; i < K; i++) assert(coefficients[i] == 0);
    assert(ncmesh_encoder_draw(encoder, NULL, K, payload, SIZE) == NCMESH_STATUS_NULL);
    assert(ncmesh_decoder_absorb(decoder, coefficients, K, payload, SIZE - 1, NULL) ==
           NCMESH_STATUS_LENGTH);
    coefficients[1] = 16;
    assert(ncmesh_decoder_absorb(decoder, coefficients, K, payload, SIZE, NULL) ==
           NCMESH_STATUS_COEFFICIENT);
    assert(ncmesh_decoder_rank(decoder) == 0);
    ncmesh_encoder_free(encoder);
    ncmesh_decoder_free(decoder);
}

int main(void) {
    assert(strchr(ncmesh_version(), '.') != NULL);
    transfer(NCMESH_FIELD_GF2);
    transfer(NCMESH_FIELD_GF16);
    transfer(NCMESH_FIELD_GF256);
    misuse();
    puts("coder: ok");
    return 0;
}
