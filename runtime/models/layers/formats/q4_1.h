// Q4_1: 32 weights d q + m in 20 bytes: d and m as float16, then q as in Q4_0. d q has 11 + 4 bits, hence is exact, so
// that the sum rounds alike with and without a fused multiply-add.
inline void q4_1(const uint8_t* from, float* to, int64_t size) {
  blocks<20>(from, size / 32, [&](const uint8_t* block, float d, float m) INLINE_LAMBDA {
    FourBits weight([d, m](V q) INLINE_LAMBDA { return d * q + m; });
    for (int i = 0; i < 16; i += LANES) {
      Integers q = unsigned_bytes(block + 4 + i);
      store(to + i, weight(q));
      store(to + 16 + i, weight(q >> 4));
    }
    to += 32;
  });
}
