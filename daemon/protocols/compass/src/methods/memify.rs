//! `memory.run_memify`: the daemon's own sweep, now instead of in idle time.

use omir_core::value::Map;

use crate::call::Call;
use crate::failure::Failure;

/// Sweeps: time moves memories between tiers, merges what says the same, and lets go of what stopped being valid long ago.
pub(crate) fn run_memify(call: &mut Call<'_>) -> Result<Map, Failure> {
    call.params.finish()?;
    let swept = call.store.engine().sweep(false)?;
    let mut map = Map::new();
    map.insert("merged", swept.merged);
    map.insert("expired", swept.expired);
    map.insert("moved", swept.moved);
    Ok(map)
}
