#ifndef NCMESH_H
#define NCMESH_H

/* Generated from crates/ffi; do not edit. `make header` writes it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 Result of a call.
 */
enum NcmeshStatus {
  /*
   Done.
   */
  NCMESH_STATUS_OK = 0,
  /*
   A handle or pointer is null.
   */
  NCMESH_STATUS_NULL = 1,
  /*
   A length is not the one that the generation needs.
   */
  NCMESH_STATUS_LENGTH = 2,
  /*
   The field is none of `NcmeshField`, or a generation or symbol size is out of range.
   */
  NCMESH_STATUS_SHAPE = 3,
  /*
   A coefficient is not an element of the field.
   */
  NCMESH_STATUS_COEFFICIENT = 4,
  /*
   There is nothing yet: no packet to recode, or a symbol that is not determined.
   */
  NCMESH_STATUS_NOT_READY = 5,
  /*
   A defect of the library. Free the handle.
   */
  NCMESH_STATUS_PANIC = 6,
};

/*
 Field of coefficients and payloads.
 */
enum NcmeshField {
  /*
   GF(2): coefficients are 0 or 1.
   */
  NCMESH_FIELD_GF2 = 1,
  /*
   GF(2^4): coefficients are 0 to 15.
   */
  NCMESH_FIELD_GF16 = 4,
  /*
   GF(2^8): coefficients are 0 to 255.
   */
  NCMESH_FIELD_GF256 = 8,
};

/*
 Receiver of a generation.
 */
struct NcmeshDecoder;

/*
 Source of a generation.
 */
struct NcmeshEncoder;

/*
 Relay of a generation.
 */
struct NcmeshRecoder;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes an encoder in `*encoder`, whose symbols are all zero. `field` is 1, 4 or 8
 (`NcmeshField`), `generation_size` 1 to 255 symbols, `symbol_size` 1 to 65,535 bytes. The seed
 decides which coefficients are drawn; two sources of one generation need different ones. On an
 error `*encoder` is null.

 # Safety
 `encoder` must be null or writable.
 */
enum NcmeshStatus ncmesh_encoder_new(uint8_t field,
                                     size_t generation_size,
                                     size_t symbol_size,
                                     uint64_t seed,
                                     struct NcmeshEncoder **encoder);

/*
 Frees an encoder; null is allowed.

 # Safety
 `encoder` must be null, or come from `ncmesh_encoder_new` and not be freed yet.
 */
void ncmesh_encoder_free(struct NcmeshEncoder *encoder);

/*
 Loads the source data of a generation, at most `generation_size * symbol_size` bytes; the rest
 is zero.

 # Safety
 `encoder` must be a live handle, `data` readable for `length` bytes; or null.
 */
enum NcmeshStatus ncmesh_encoder_load(struct NcmeshEncoder *encoder,
                                      const uint8_t *data,
                                      size_t length);

/*
 Writes the payload of the packet with the given `generation_size` coefficients.

 # Safety
 `encoder` must be a live handle; `coefficients` readable and `payload` writable for their
 lengths; or null.
 */
enum NcmeshStatus ncmesh_encoder_encode(struct NcmeshEncoder *encoder,
                                        const uint8_t *coefficients,
                                        size_t coefficients_length,
                                        uint8_t *payload,
                                        size_t payload_length);

/*
 Draws random coefficients, and writes them and the payload of their packet.

 # Safety
 `encoder` must be a live handle; `coefficients` and `payload` writable for their lengths; or
 null.
 */
enum NcmeshStatus ncmesh_encoder_draw(struct NcmeshEncoder *encoder,
                                      uint8_t *coefficients,
                                      size_t coefficients_length,
                                      uint8_t *payload,
                                      size_t payload_length);

/*
 Makes a recoder without packets in `*recoder`; otherwise as `ncmesh_encoder_new`.

 # Safety
 `recoder` must be null or writable.
 */
enum NcmeshStatus ncmesh_recoder_new(uint8_t field,
                                     size_t generation_size,
                                     size_t symbol_size,
                                     uint64_t seed,
                                     struct NcmeshRecoder **recoder);

/*
 Frees a recoder; null is allowed.

 # Safety
 `recoder` must be null, or come from `ncmesh_recoder_new` and not be freed yet.
 */
void ncmesh_recoder_free(struct NcmeshRecoder *recoder);

/*
 Takes a packet. `*innovative` says whether it brought something new; `innovative` may be null.

 # Safety
 `recoder` must be a live handle; `coefficients` and `payload` readable for their lengths;
 `innovative` writable; or null.
 */
enum NcmeshStatus ncmesh_recoder_absorb(struct NcmeshRecoder *recoder,
                                        const uint8_t *coefficients,
                                        size_t coefficients_length,
                                        const uint8_t *payload,
                                        size_t payload_length,
                                        bool *innovative);

/*
 Writes a random combination of the packets held. `NCMESH_STATUS_NOT_READY` without packets.

 # Safety
 `recoder` must be a live handle; `coefficients` and `payload` writable for their lengths; or
 null.
 */
enum NcmeshStatus ncmesh_recoder_recode(struct NcmeshRecoder *recoder,
                                        uint8_t *coefficients,
                                        size_t coefficients_length,
                                        uint8_t *payload,
                                        size_t payload_length);

/*
 Returns the number of linearly independent packets held; 0 for null.

 # Safety
 `recoder` must be null or a live handle.
 */
size_t ncmesh_recoder_rank(struct NcmeshRecoder *recoder);

/*
 Makes a decoder without packets in `*decoder`; otherwise as `ncmesh_encoder_new`.

 # Safety
 `decoder` must be null or writable.
 */
enum NcmeshStatus ncmesh_decoder_new(uint8_t field,
                                     size_t generation_size,
                                     size_t symbol_size,
                                     struct NcmeshDecoder **decoder);

/*
 Frees a decoder; null is allowed.

 # Safety
 `decoder` must be null, or come from `ncmesh_decoder_new` and not be freed yet.
 */
void ncmesh_decoder_free(struct NcmeshDecoder *decoder);

/*
 Takes a packet. `*innovative` says whether it brought something new; `innovative` may be null.

 # Safety
 As for `ncmesh_recoder_absorb`.
 */
enum NcmeshStatus ncmesh_decoder_absorb(struct NcmeshDecoder *decoder,
                                        const uint8_t *coefficients,
                                        size_t coefficients_length,
                                        const uint8_t *payload,
                                        size_t payload_length,
                                        bool *innovative);

/*
 Returns the number of linearly independent packets held; 0 for null.

 # Safety
 `decoder` must be null or a live handle.
 */
size_t ncmesh_decoder_rank(struct NcmeshDecoder *decoder);

/*
 Copies source symbol `index`, `symbol_size` bytes, as soon as the packets determine it.
 `NCMESH_STATUS_NOT_READY` until then, and past the end.

 # Safety
 `decoder` must be a live handle, `symbol` writable for `length` bytes; or null.
 */
enum NcmeshStatus ncmesh_decoder_symbol(struct NcmeshDecoder *decoder,
                                        size_t index,
                                        uint8_t *symbol,
                                        size_t length);

/*
 Copies the source data, `generation_size * symbol_size` bytes. `NCMESH_STATUS_NOT_READY` before
 full rank.

 # Safety
 `decoder` must be a live handle, `data` writable for `length` bytes; or null.
 */
enum NcmeshStatus ncmesh_decoder_decode(struct NcmeshDecoder *decoder,
                                        uint8_t *data,
                                        size_t length);

/*
 Returns the library's version, such as "0.1.0". The text lives as long as the program.
 */
const char *ncmesh_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NCMESH_H */
