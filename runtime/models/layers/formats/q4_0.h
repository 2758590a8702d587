// Q4_0: 32 weights d (q - 8) in 18 bytes: d as float16, then 16 bytes, whose low halves are the q of weights 0 to 15 and
// whose high halves those of 16 to 31. The product of 11 and 4 bits is exact.
inline void q4_0(const uint8_t* from, float* to, int64_t size) {
  for (; size > 0; size -= 32, from += 18, to += 32) {
    V d = half(from);
    for (int i = 0; i < 16; i += LANES) {
      Integers q = unsigned_bytes(from + 2 + i);
      store(to + i, d * floats((q & 15) - 8));
      store(to + 16 + i, d * floats((q >> 4) - 8));
    }
  }
}
