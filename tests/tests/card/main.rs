//! Cards that are cut, pulled out, full, slow, or that rot: nothing acknowledged is lost, and no answer is wrong.

mod bad_disk;
mod card_faults;
mod full_card;
mod healing;
mod index_loss;
mod kills;
mod lost_facts;
mod lost_file;
mod power_cuts;
mod read_errors;
mod rot;
mod rot_campaign;
mod slow_disk;
mod vectors;
