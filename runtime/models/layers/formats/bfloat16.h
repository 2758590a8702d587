// bfloat16: the upper 16 bits of a float32.
inline void bfloat16(const uint8_t* from, float* to, int64_t size) {
  int64_t i = 0;
  for (; i + LANES <= size; i += LANES) store(to + i, (V)(words(from + 2 * i) << 16));
  for (; i < size; ++i) {
    uint8_t some[2 * LANES] = {from[2 * i], from[2 * i + 1]};
    to[i] = ((V)(words(some) << 16))[0];
  }
}
