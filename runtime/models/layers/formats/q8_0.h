// Q8_0: 32 weights d q in 34 bytes: d as float16, then q as signed bytes. The product of 11 and 8 bits is exact.
inline void q8_0(const uint8_t* from, float* to, int64_t size) {
  blocks<34>(from, size / 32, [&](const uint8_t* block, float d, float) INLINE_LAMBDA {
    for (int i = 0; i < 32; i += LANES) store(to + i, d * floats(signed_bytes(block + 2 + i)));
    to += 32;
  });
}
