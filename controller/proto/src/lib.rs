//! weft.v1, generated from weft.proto
