// Q4_1: 32 weights d q + m in 20 bytes: d and m as float16, then q as in Q4_0. d q has 11 + 4 bits, hence is exact, so
// that the sum rounds alike with and without a fused multiply-add.
inline void q4_1(const uint8_t* from, float* to, int64_t size) {
  for (; size > 0; size -= 32, from += 20, to += 32) {
    auto [d, m] = two_halves(from);
    for (int i = 0; i < 16; i += LANES) {
      Integers q = unsigned_bytes(from + 4 + i);
      store(to + i, d * floats(q & 15) + m);
      store(to + 16 + i, d * floats(q >> 4) + m);
    }
  }
}
