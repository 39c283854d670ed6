//! Random linear network coding: Encoder, Recoder, Decoder over a generation of symbols.
