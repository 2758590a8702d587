// Q6_K: 256 weights (d s) (q - 32) in 210 bytes: 128 with the lower four bits of q, 64 with the upper two, s of each 16
// weights as signed bytes, d as float16. A half of the weights is four parts of 32: bytes 0 to 31 of its 64 hold the lower
// bits of part 0 in their low and of part 2 in their high halves, bytes 32 to 63 those of parts 1 and 3; its 32 bytes of
// upper bits hold those of part p from bit 2 p on. The product of 11, 8 and 6 bits: s and q - 32 have a sign each, hence
// it has 23 bits at most beside it and is exact.
inline void q6_k(const uint8_t* from, float* to, int64_t size) {
  for (; size > 0; size -= 256, from += 210) {
    V d = half(from + 208);
    for (int part = 0; part < 8; ++part, to += 32) {
      int of_half = part % 4;
      const uint8_t *lower = from + part / 4 * 64 + of_half % 2 * 32, *upper = from + 128 + part / 4 * 32;
      auto scales = (const int8_t*)from + 192 + 2 * part;
      for (int i = 0; i < 32; i += LANES) {
        Integers low = unsigned_bytes(lower + i) >> (of_half / 2 * 4) & 15;
        Integers high = unsigned_bytes(upper + i) >> (2 * of_half) & 3;
        store(to + i, d * float(scales[i / 16]) * floats((low | high << 4) - 32));
      }
    }
  }
}
