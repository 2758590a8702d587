// Q8_0: 32 weights d q in 34 bytes: d as float16, then q as signed bytes. The product of 11 and 8 bits is exact.
inline void q8_0(const uint8_t* from, float* to, int64_t size) {
  for (; size > 0; size -= 32, from += 34, to += 32) {
    V d = half(from);
    for (int i = 0; i < 32; i += LANES) store(to + i, d * floats(signed_bytes(from + 2 + i)));
  }
}
