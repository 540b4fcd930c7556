//! Names that follow from what is named. A tenant is part of each of them, so that nothing of two tenants ever meets.
//!
//! | name | of |
//! |---|---|
//! | `MemoryRecord/xp.<tenant>.<hex>` | an experience |
//! | `Entity/xn.<tenant>.<hex>` | a node |
//! | `Entity/xq.<tenant>.<slug>` | a pattern |
//! | `Entity/xt.<tenant>`, `Entity/xd.<tenant>.<domain>` | a tenant, a domain of it |
//! | `Relationship/xr.<tenant>.<hex>` | two nodes that were used together |
//!
//! `<hex>` is the beginning of a SHA-256: refs and task ids hold characters that no id may.

pub(crate) use omir_core::hex::encode as hex;
use omir_core::reference::{Id, Ref, ResourceType};
use sha2::{Digest as _, Sha256};

/// The domain of an experience that states none: it matches every domain.
pub(crate) const ANY_DOMAIN: &str = "any";

/// The hex digits of a digest that an id holds.
const DIGITS: usize = 32;

/// The longest slug that is an id as it is; a longer one is named by its digest.
const LONGEST_SLUG: usize = 60;

/// A key of 128 bits: the beginning of a SHA-256.
pub(crate) type Key = [u8; 16];

/// Returns the SHA-256 of the parts with a NUL between two of them, which none of them holds unnoticed: only the last part
/// may hold one.
fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            hasher.update([0]);
        }
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

fn short(parts: &[&str]) -> String {
    let mut text = hex(&digest(parts));
    text.truncate(DIGITS);
    text
}

/// Returns a key that tells things of one tenant apart.
pub(crate) fn key(parts: &[&str]) -> Key {
    let digest = digest(parts);
    std::array::from_fn(|at| digest[at])
}

/// A tenant, as ids spell it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tenant {
    name: String,
    spelt: String,
}

impl Tenant {
    /// Returns the tenant of that name. A name that fits no id is spelt by its digest, behind a colon that no name has.
    pub(crate) fn new(name: &str) -> Self {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = (1..=64).contains(&name.len()) && name.bytes().all(is_plain);
        let spelt = if fits { name.to_owned() } else { format!(":{}", short(&[name])) };
        Self { name: name.to_owned(), spelt }
    }

    fn named(&self, kind: ResourceType, class: &str, rest: &str) -> Ref {
        let text = format!("{class}.{}{rest}", self.spelt);
        // Its alphabet and its length are those of an id: a test tries the longest.
        Ref::new(kind, Id::new(text).unwrap_or_else(|_| fallback(class)))
    }

    /// Returns the name of the experience of a task.
    pub(crate) fn experience(&self, task: &str) -> Ref {
        let rest = format!(".{}", short(&[task]));
        self.named(ResourceType::MemoryRecord, "xp", &rest)
    }

    /// Returns the `experience_id` of a task.
    pub(crate) fn experience_id(&self, task: &str) -> String {
        format!("exp_{}", &hex(&digest(&[&self.name, task]))[..12])
    }

    /// Returns the name of a node.
    pub(crate) fn node(&self, node_type: &str, reference: &str) -> Ref {
        let rest = format!(".{}", short(&[node_type, reference]));
        self.named(ResourceType::Entity, "xn", &rest)
    }

    /// Returns the name of a pattern.
    pub(crate) fn pattern(&self, slug: &str) -> Ref {
        let rest = if slug.len() <= LONGEST_SLUG {
            format!(".{slug}")
        } else {
            // A slug has letters, digits and `_` alone, so this is none.
            format!(".:{}", short(&[slug]))
        };
        self.named(ResourceType::Entity, "xq", &rest)
    }

    /// Returns the name of the tenant itself.
    pub(crate) fn entity(&self) -> Ref {
        self.named(ResourceType::Entity, "xt", "")
    }

    /// Returns the name of a domain.
    pub(crate) fn domain(&self, domain: &str) -> Ref {
        self.named(ResourceType::Entity, "xd", &format!(".{domain}"))
    }

    /// Returns the name of the co-use of two nodes, whichever comes first.
    pub(crate) fn pair(&self, a: &Ref, b: &Ref) -> Ref {
        let (first, second) = if a <= b { (a, b) } else { (b, a) };
        let rest = format!(".{}", short(&[first.id.as_str(), second.id.as_str()]));
        self.named(ResourceType::Relationship, "xr", &rest)
    }

    /// Returns the name as people know it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

fn fallback(class: &str) -> Id {
    Id::new(format!("{class}.:none")).expect("four letters, a dot and a colon are an id")
}

/// Returns the tenant, as ids spell it, and the key of an experience, if the id is one of an experience.
pub(crate) fn parse_experience(id: &str) -> Option<(&str, Key)> {
    let (tenant, digits) = id.strip_prefix("xp.")?.rsplit_once('.')?;
    if digits.len() != DIGITS || !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let bytes = u128::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some((tenant, bytes))
}

impl Tenant {
    /// Returns the tenant as its ids spell it.
    pub(crate) fn spelt(&self) -> &str {
        &self.spelt
    }
}

#[cfg(test)]
mod tests {
    use omird_router::DEFAULT_TENANT;

    use super::*;

    #[test]
    fn an_experience_has_the_id_that_the_contract_gives_it() {
        let tenant = Tenant::new(DEFAULT_TENANT);
        assert_eq!(tenant.experience_id("t-1"), "exp_672fd682598d");
        let name = tenant.experience("t-1");
        let (spelt, key) = parse_experience(name.id.as_str()).unwrap();
        assert_eq!((spelt, name.kind), ("default", ResourceType::MemoryRecord));
        assert_eq!(format!("xp.default.{}", hex(&key)), name.id.as_str());
        for id in ["xp.default", "xp.default.12", &name.id.as_str().to_uppercase(), "a.b.c"] {
            assert_eq!(parse_experience(id), None, "{id}");
        }
    }

    #[test]
    fn whatever_is_named_its_id_is_one() {
        let long = "w".repeat(2000);
        for name in ["default", "a.b", &"t".repeat(64), &"t".repeat(65), "", "küche", "a/b\n"] {
            let tenant = Tenant::new(name);
            let node = tenant.node("tool", &long);
            let all = [
                tenant.experience(&long),
                tenant.pattern(&long),
                tenant.pattern(&"w".repeat(LONGEST_SLUG)),
                tenant.entity(),
                tenant.domain("documentation"),
                tenant.pair(&node, &tenant.node("api", "b")),
                node,
            ];
            for reference in all {
                assert!(!reference.id.as_str().ends_with(":none"), "{name}: {reference}");
            }
        }
    }

    #[test]
    fn nothing_of_two_tenants_has_one_name() {
        let (a, b) = (Tenant::new("a"), Tenant::new("b"));
        assert_ne!(a.experience("t"), b.experience("t"));
        assert_ne!(a.experience_id("t"), b.experience_id("t"));
        assert_ne!(a.node("tool", "x"), b.node("tool", "x"));
        assert_ne!(a.pattern("x"), b.pattern("x"));
        // A tenant whose name looks like what another's ids are made of.
        assert_ne!(Tenant::new("a.b").pattern("c"), Tenant::new("a").pattern("b_c"));
        assert_eq!(a.pair(&a.entity(), &a.domain("x")), a.pair(&a.domain("x"), &a.entity()));
    }
}
