// Q4_0: 32 weights d (q - 8) in 18 bytes: d as float16, then 16 bytes, whose low halves are the q of weights 0 to 15 and
// whose high halves those of 16 to 31. The product of 11 and 4 bits is exact.
inline void q4_0(const uint8_t* from, float* to, int64_t size) {
  blocks<18>(from, size / 32, [&](const uint8_t* block, float d, float) INLINE_LAMBDA {
    FourBits weight([d](V q) INLINE_LAMBDA { return d * (q - 8); });
    for (int i = 0; i < 16; i += LANES) {
      Integers q = unsigned_bytes(block + 2 + i);
      store(to + i, weight(q));
      store(to + 16 + i, weight(q >> 4));
    }
    to += 32;
  });
}
