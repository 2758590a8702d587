// The weights that integers stand for by their low four bits: value(q) where q, 0 to 15, is in those bits. With as many
// lanes all are computed once and looked up; the same operations give the same bits.
template <class Value>
struct FourBits {
#if LANES == 16
  V all;
  INLINE explicit FourBits(Value value) : all(value(V{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})) {}
  INLINE V operator()(Integers q) const { return (V)_mm512_permutexvar_ps((__m512i)q, (__m512)all); }
#else
  Value value;
  INLINE explicit FourBits(Value value) : value(value) {}
  INLINE V operator()(Integers q) const { return value(floats(q & 15)); }
#endif
};
