// Q5_0: 32 weights d (q - 16) in 22 bytes: d as float16, then q (`five_bits`). The product of 11 and 5 bits is exact.
inline void q5_0(const uint8_t* from, float* to, int64_t size) {
  blocks<22>(from, size / 32, [&](const uint8_t* block, float d, float) INLINE_LAMBDA {
    five_bits(block + 2, [&](int i, Integers q) INLINE_LAMBDA { store(to + i, d * floats(q - 16)); });
    to += 32;
  });
}
