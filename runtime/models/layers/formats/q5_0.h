// Q5_0: 32 weights d (q - 16) in 22 bytes: d as float16, then q (`five_bits`). The product of 11 and 5 bits is exact.
inline void q5_0(const uint8_t* from, float* to, int64_t size) {
  for (; size > 0; size -= 32, from += 22, to += 32) {
    V d = half(from);
    five_bits(from + 2, [&](int i, Integers q) INLINE_LAMBDA { store(to + i, d * floats(q - 16)); });
  }
}
