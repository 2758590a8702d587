// Q5_K: 256 weights in 176 bytes: d, e, scales (`six_bit_scales.h`), 32 bytes whose bit p is the fifth bit of the weights
// of part p, then four bits as in Q4_K. (d s) q has 17 + 5 bits, hence is exact.
inline void q5_k(const uint8_t* from, float* to, int64_t size) {
  for (; size > 0; size -= 256, from += 176)
    for (int part = 0; part < 8; part += 2, to += 64) {
      const uint8_t *fifth = from + 16, *bytes = from + 48 + 16 * part;
      auto [scale, offset] = six_bit_scale(from, from + 4, part);
      auto [next_scale, next_offset] = six_bit_scale(from, from + 4, part + 1);
      for (int i = 0; i < 32; i += LANES) {
        Integers q = unsigned_bytes(bytes + i), high = unsigned_bytes(fifth + i) >> part;
        store(to + i, scale * floats((q & 15) | (high & 1) << 4) - offset);
        store(to + 32 + i, next_scale * floats(q >> 4 | (high & 2) << 3) - next_offset);
      }
    }
}
