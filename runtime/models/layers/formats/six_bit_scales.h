// Q4_K and Q5_K have a scale s and an offset o of 6 bits for each 32 of 256 weights, both times a float16: (d s) q - (e o).
// The 12 bytes hold: 0 to 3, s of parts 0 to 3 and the upper two bits of s of parts 4 to 7; 4 to 7, the same of o; 8 to
// 11, the lower four bits of s and of o of parts 4 to 7. d s and e o have 11 + 6 bits, hence are exact.
struct ScaleAndOffset { V scale, offset; };

INLINE ScaleAndOffset six_bit_scale(const uint8_t* d_and_e, const uint8_t* packed, int part) {
  int s, o, at = part % 4;
  if (part < 4) {
    s = packed[at] & 63, o = packed[4 + at] & 63;
  } else {
    s = (packed[8 + at] & 15) | (packed[at] >> 6 << 4);
    o = packed[8 + at] >> 4 | (packed[4 + at] >> 6 << 4);
  }
  auto [d, e] = two_halves(d_and_e);
  return {d * float(s), e * float(o)};
}
