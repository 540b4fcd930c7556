//! Money for models.
//!
//! | file | holds |
//! |---|---|
//! | `account` | the budget of a month |
//! | `paying` | a request that is paid for out of it |

pub(crate) mod account;
pub(crate) mod paying;
