//! `[ros2]`, as far as it depends on the rest of the configuration. Its keys are those of [`omir_ros2`].

use omir_ros2::rules::{Ros2, Ros2Section};

use super::{Host, Invalid};
use crate::engine::Source;

/// Checks the section. Returns `None` where there is none, or it is not enabled.
pub fn resolve(
    written: Option<&Ros2Section>,
    host: &Host,
    source: Source,
) -> Result<Option<Ros2>, Invalid> {
    let Some(written) = written else { return Ok(None) };
    let ros2 = written.resolve_in(host.ros_domain_id.as_deref()).map_err(Invalid::of_all)?;
    if ros2.use_sim_time && source != Source::Simulated {
        let message = "the time can only come from /clock with \
                       clock.source = \"simulated\"";
        return Err(Invalid::other("ros2.use_sim_time", message));
    }
    Ok(Some(ros2).filter(|ros2| ros2.enabled))
}
