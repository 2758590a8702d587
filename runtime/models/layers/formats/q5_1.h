// Q5_1: 32 weights d q + m in 24 bytes: d and m as float16, then q (`five_bits`). d q has 11 + 5 bits, hence is exact.
inline void q5_1(const uint8_t* from, float* to, int64_t size) {
  blocks<24>(from, size / 32, [&](const uint8_t* block, float d, float m) INLINE_LAMBDA {
    five_bits(block + 4, [&](int i, Integers q) INLINE_LAMBDA { store(to + i, d * floats(q) + m); });
    to += 32;
  });
}
