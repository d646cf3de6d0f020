//! Numbers that a seed decides.

/// A die with as many sides as it is asked for.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        // Neighbouring seeds begin far apart, and none of them at zero, which xorshift never leaves.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Less than `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % bound.max(1) as u64).unwrap_or_default()
    }

    /// Whether it happens, that often of a hundred.
    pub(super) fn happens(&mut self, of_hundred: usize) -> bool {
        self.below(100) < of_hundred
    }

    /// One of them; `None` of none.
    pub(super) fn one_of<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        among.get(self.below(among.len()))
    }
}
