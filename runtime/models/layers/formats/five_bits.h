// Q5_0 and Q5_1 have a fifth bit for each of the 32 weights of a block, as 4 bytes. Calls put(i, q) for the weights from
// i on, LANES at a time; `fifth`: those 4 bytes, before the 16 bytes of low bits, which lie as in Q4_0.
template <class Put>
INLINE void five_bits(const uint8_t* fifth, Put&& put) {
  uint32_t bits;
  __builtin_memcpy(&bits, fifth, sizeof bits);
  Bits lane;
  for (int i = 0; i < LANES; ++i) lane[i] = i;
  for (int i = 0; i < 16; i += LANES) {
    Integers q = unsigned_bytes(fifth + 4 + i);
    put(i, (q & 15) | (Integers)((bits >> (lane + i) & 1) << 4));
    put(16 + i, q >> 4 | (Integers)((bits >> (lane + i + 16) & 1) << 4));
  }
}
