//! Tenants, and the names in the store that keep them apart.

use omir_core::reference::check_id;

/// The tenant of callers whose token names none. Names in the store that are made of a tenant hold it: it never changes.
pub const DEFAULT_TENANT: &str = "default";

/// Longest id that is a name as it is: what stands before it must have room too.
const LONGEST: usize = 96;

/// Returns the key that stands for an id of a protocol in names of the store, for a protocol whose ids are any text.
///
/// It is the id itself where that can be a name and belongs to [`DEFAULT_TENANT`], so that people can read it. All others are what
/// `digest` makes of id and tenant: 32 hexadecimal digits. So is an id that looks like such a digest, so that no client can choose an
/// id that is another's key. Keys are on the disk: the rule never changes.
pub fn store_key(tenant: &str, id: &str, digest: impl FnOnce() -> String) -> String {
    let is_digest = id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if tenant == DEFAULT_TENANT && id.len() <= LONGEST && check_id(id).is_ok() && !is_digest {
        return id.to_owned();
    }
    digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_own_key_unless_another_could_have_it() {
        let key = |tenant: &str, id: &str| store_key(tenant, id, || "hashed".to_owned());
        assert_eq!(key("default", "mem-7"), "mem-7");
        let longest = "x".repeat(LONGEST);
        assert_eq!(key("default", &longest), longest);
        for (tenant, id) in [
            ("acme", "mem-7"),
            ("default", "küche"),
            ("default", "a b"),
            ("default", ""),
            ("default", "0123456789abcdef0123456789abcdef"),
            ("default", &format!("{longest}x")),
        ] {
            assert_eq!(key(tenant, id), "hashed", "{tenant} {id}");
        }
    }
}
