// Q4_K: 256 weights in 144 bytes: d, e, scales (`six_bit_scales.h`), then four times 32 bytes, whose low halves are the q
// of one part of 32 weights and whose high halves those of the next. (d s) q has 17 + 4 bits, hence is exact.
inline void q4_k(const uint8_t* from, float* to, int64_t size) {
  for (; size > 0; size -= 256, from += 144)
    for (int part = 0; part < 8; part += 2, to += 64) {
      const uint8_t* bytes = from + 16 + 16 * part;
      auto [scale, offset] = six_bit_scale(from, from + 4, part);
      auto [next_scale, next_offset] = six_bit_scale(from, from + 4, part + 1);
      FourBits weight([scale = scale, offset = offset](V q) INLINE_LAMBDA { return scale * q - offset; });
      FourBits next([scale = next_scale, offset = next_offset](V q) INLINE_LAMBDA { return scale * q - offset; });
      for (int i = 0; i < 32; i += LANES) {
        Integers q = unsigned_bytes(bytes + i);
        store(to + i, weight(q));
        store(to + 32 + i, next(q >> 4));
      }
    }
}
