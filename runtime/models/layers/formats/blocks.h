// Most formats store 32 weights as a block that begins with one or two float16 numbers. Calls expand(block, first, second)
// for each of `count` blocks of `bytes` bytes: its address and what its first two float16 numbers are, of which a format
// with one ignores the second. Many blocks' are converted at once: one by one that takes as long as the weights.
template <int bytes, class Expand>
INLINE void blocks(const uint8_t* from, int64_t count, Expand&& expand) {
  constexpr int64_t kBlocks = 64;
  float first[kBlocks], second[kBlocks];
  for (; count > 0; count -= kBlocks) {
    const int64_t size = std::min(count, kBlocks);
#if LANES == 16
    const Integers at = bytes * Integers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (int64_t i = 0; i < size; i += LANES) {
      __mmask16 there = 0xffff >> std::max<int64_t>(i + LANES - size, 0);
      __m512i both = _mm512_mask_i32gather_epi32(__m512i{}, there, (__m512i)at, from + bytes * i, 1);
      store(first + i, (V)_mm512_cvtph_ps(_mm512_cvtepi32_epi16(both)));
      store(second + i, (V)_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(both, 16))));
    }
#else
    for (int64_t i = 0; i < size; ++i) {
      first[i] = half(from + bytes * i)[0];
      second[i] = half(from + bytes * i + 2)[0];
    }
#endif
    for (int64_t i = 0; i < size; ++i, from += bytes) expand(from, first[i], second[i]);
  }
}
