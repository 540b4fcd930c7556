//! State of the card: its faults, the reserve for a full disk, the quota, the budget of a day, wear and rot.

pub(crate) mod budget;
pub(crate) mod faults;
pub(crate) mod free_space;
pub(crate) mod health;
pub(crate) mod integrity;
pub(crate) mod odometer;
pub(crate) mod quota;
pub(crate) mod reserve;
pub(crate) mod wear;
