//! Files with bytes that are others, and cut short.

/// Gives sixty damaged copies of `whole`, one after the other; the first `spared` bytes stay.
pub fn damaged(whole: &[u8], spared: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    (0..60).map(move |round| {
        let mut damaged = whole.to_vec();
        for _ in 0..1 + round % 20 {
            let at = spared + random() % (damaged.len() - spared);
            damaged[at] = random() as u8;
        }
        if round % 3 == 0 {
            damaged.truncate(spared + random() % damaged.len());
        }
        damaged
    })
}
