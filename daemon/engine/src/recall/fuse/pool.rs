//! Lists that are kept for the next question.
//!
//! Memory that is given back to the system costs a page fault for each of its pages when it is taken again, some two hundred for a
//! question with 33,000 matches.

use parking_lot::Mutex;

use super::lists::Lists;

/// Most entries for which the memory of a list is kept: two megabytes each.
const MOST_SIMILAR_KEPT: usize = 1 << 18;
const MOST_CANDIDATES_KEPT: usize = 1 << 16;
/// Lists that are kept. More are made while more questions are asked at once.
const MOST_KEPT: usize = 2;

/// Lists that no question uses right now. The one used last is taken first: the processor's cache knows it still, whatever
/// thread it was.
static POOL: Mutex<Vec<Lists>> = Mutex::new(Vec::new());

/// Takes empty lists.
pub(super) fn take() -> Lists {
    POOL.lock().pop().unwrap_or_default()
}

/// Gives lists back, whatever is in them.
pub(super) fn give_back(lists: Lists) {
    let lists = Lists {
        similar: emptied(lists.similar, MOST_SIMILAR_KEPT),
        others: emptied(lists.others, MOST_CANDIDATES_KEPT),
    };
    let mut pool = POOL.lock();
    if pool.len() < MOST_KEPT {
        pool.push(lists);
    }
}

/// Empties a list, and gives its memory to the system if it is large.
fn emptied<T>(mut list: Vec<T>, most: usize) -> Vec<T> {
    list.clear();
    list.shrink_to(most);
    list
}
