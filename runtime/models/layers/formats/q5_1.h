// Q5_1: 32 weights d q + m in 24 bytes: d and m as float16, then q (`five_bits`). d q has 11 + 5 bits, hence is exact.
inline void q5_1(const uint8_t* from, float* to, int64_t size) {
  for (; size > 0; size -= 32, from += 24, to += 32) {
    auto [d, m] = two_halves(from);
    five_bits(from + 4, [&, d = d, m = m](int i, Integers q) INLINE_LAMBDA { store(to + i, d * floats(q) + m); });
  }
}
