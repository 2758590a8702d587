// float16: every number of it is one of float32.
inline void float16(const uint8_t* from, float* to, int64_t size) {
  int64_t i = 0;
  for (; i + LANES <= size; i += LANES) store(to + i, halves(from + 2 * i));
  for (; i < size; ++i) to[i] = half(from + 2 * i)[0];
}
