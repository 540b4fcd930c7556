//! Type descriptions (REP-2011, `type_description_interfaces`), from which the hash is made and which
//! nodes tell each other.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use hiroz_schema::{
    FieldDescription, FieldTypeDescription, TypeDescription, TypeDescriptionMsg, TypeHash, TypeId,
    calculate_hash,
};

use super::parse::{Raw, RawElement, RawField, never_empty};
use super::registry::Registry;
use super::{
    ActionType, Element, Field, InterfaceError, MessageType, ServiceType, Shape, TypeName,
};

/// Returns the type of a description, which contains all that the type needs.
///
/// A caller that has the announced hash compares it with that of the type.
pub fn message_type(described: &TypeDescriptionMsg) -> Result<Arc<MessageType>, InterfaceError> {
    let mut alone = Registry::new();
    let main = &described.type_description;
    for one in std::iter::once(main).chain(&described.referenced_type_descriptions) {
        let (name, raw) = raw(one)?;
        alone.insert(name, raw);
    }
    alone.message(&main.type_name)
}

impl MessageType {
    /// The description of this type and of all it contains, those in the order of their names.
    pub fn description(&self) -> TypeDescriptionMsg {
        describe(&self.name, &self.fields)
    }
}

impl ServiceType {
    /// The description of the service.
    pub fn description(&self) -> TypeDescriptionMsg {
        self.ty.description()
    }
}

impl ActionType {
    /// The description of the action.
    pub fn description(&self) -> TypeDescriptionMsg {
        self.ty.description()
    }
}

/// RIHS01 of a type of these fields.
pub(super) fn hash(name: &TypeName, fields: &[Field]) -> TypeHash {
    calculate_hash(&describe(name, fields))
}

fn describe(name: &TypeName, fields: &[Field]) -> TypeDescriptionMsg {
    let mut referenced = BTreeMap::new();
    gather(fields, &mut referenced);
    TypeDescriptionMsg {
        type_description: individual(name, fields),
        referenced_type_descriptions: referenced.into_values().collect(),
    }
}

fn gather(fields: &[Field], into: &mut BTreeMap<String, TypeDescription>) {
    for field in fields {
        if let Element::Message(ty) = &field.ty.element
            && !into.contains_key(&ty.name.to_string())
        {
            into.insert(ty.name.to_string(), individual(&ty.name, &ty.fields));
            gather(&ty.fields, into);
        }
    }
}

fn individual(name: &TypeName, fields: &[Field]) -> TypeDescription {
    TypeDescription {
        type_name: name.to_string(),
        fields: fields
            .iter()
            .map(|field| FieldDescription {
                name: field.name.clone(),
                field_type: field_type(&field.ty.element, field.ty.shape),
                default_value: String::new(),
            })
            .collect(),
    }
}

fn field_type(element: &Element, shape: Shape) -> FieldTypeDescription {
    let mut nested_type_name = String::new();
    let mut string_capacity = 0;
    let single = match element {
        Element::Message(ty) => {
            nested_type_name = ty.name.to_string();
            TypeId::NESTED_TYPE
        }
        Element::I8 => TypeId::INT8,
        Element::U8 => TypeId::UINT8,
        Element::I16 => TypeId::INT16,
        Element::U16 => TypeId::UINT16,
        Element::I32 => TypeId::INT32,
        Element::U32 => TypeId::UINT32,
        Element::I64 => TypeId::INT64,
        Element::U64 => TypeId::UINT64,
        Element::F32 => TypeId::FLOAT32,
        Element::F64 => TypeId::FLOAT64,
        Element::Char => CHAR,
        Element::WideChar => WIDE_CHAR,
        Element::Bool => TypeId::BOOL,
        Element::Byte => TypeId::BYTE,
        Element::Text { bound: None } => TypeId::STRING,
        Element::WideText { bound: None } => TypeId::WSTRING,
        Element::Text { bound: Some(n) } => {
            string_capacity = *n as u64;
            TypeId::BOUNDED_STRING
        }
        Element::WideText { bound: Some(n) } => {
            string_capacity = *n as u64;
            TypeId::BOUNDED_WSTRING
        }
    };
    let (offset, capacity) = match shape {
        Shape::Single => (0, 0),
        Shape::Array(n) => (TypeId::ARRAY_OFFSET, n as u64),
        Shape::Bounded(n) => (TypeId::BOUNDED_SEQUENCE_OFFSET, n as u64),
        Shape::Unbounded => (TypeId::UNBOUNDED_SEQUENCE_OFFSET, 0),
    };
    FieldTypeDescription { type_id: single + offset, capacity, string_capacity, nested_type_name }
}

/// `FIELD_TYPE_CHAR` and `FIELD_TYPE_WCHAR` of `type_description_interfaces/msg/FieldType`.
const CHAR: u8 = 13;
const WIDE_CHAR: u8 = 14;

fn raw(described: &TypeDescription) -> Result<(TypeName, Raw), InterfaceError> {
    let bad = |why: String| InterfaceError::Description { name: described.type_name.clone(), why };
    let name: TypeName = described.type_name.parse()?;
    let mut fields: Vec<RawField> = Vec::new();
    let mut names = HashSet::new();
    for field in &described.fields {
        if !names.insert(field.name.as_str()) {
            return Err(bad(format!("the field `{}` stands there twice", field.name)));
        }
        let (element, shape) = element_and_shape(&field.field_type)
            .map_err(|why| bad(format!("the field `{}`: {why}", field.name)))?;
        fields.push(RawField { name: field.name.clone(), element, shape, default: None });
    }
    Ok((name, Raw { fields: never_empty(fields), constants: Vec::new() }))
}

/// A field of a description that no field can be.
enum BadField {
    TooMany(u64),
    EmptyArray,
    /// No number of a type.
    Number(u8),
    /// The number of a type that is not supported.
    Unsupported(u8),
    Name(InterfaceError),
}

impl fmt::Display for BadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(n) => write!(f, "{n} is too many"),
            Self::EmptyArray => f.write_str("an array of none"),
            Self::Number(id) => write!(f, "{id} is the number of no type"),
            Self::Unsupported(id) => write!(f, "the type of number {id} is not supported"),
            Self::Name(why) => why.fmt(f),
        }
    }
}

fn element_and_shape(ty: &FieldTypeDescription) -> Result<(RawElement, Shape), BadField> {
    let size = |n: u64| usize::try_from(n).map_err(|_| BadField::TooMany(n));
    let capacity = size(ty.capacity)?;
    let (single, shape) = match ty.type_id {
        id @ 1..=48 => (id, Shape::Single),
        id @ 49..=96 => (id - TypeId::ARRAY_OFFSET, Shape::Array(capacity)),
        id @ 97..=144 => (id - TypeId::BOUNDED_SEQUENCE_OFFSET, Shape::Bounded(capacity)),
        id @ 145..=192 => (id - TypeId::UNBOUNDED_SEQUENCE_OFFSET, Shape::Unbounded),
        id => return Err(BadField::Number(id)),
    };
    if matches!(shape, Shape::Array(0) | Shape::Bounded(0)) {
        return Err(BadField::EmptyArray);
    }
    let bound = Some(size(ty.string_capacity)?);
    let element = match single {
        TypeId::NESTED_TYPE => {
            let name = ty.nested_type_name.parse().map_err(BadField::Name)?;
            return Ok((RawElement::Named(name), shape));
        }
        TypeId::INT8 => Element::I8,
        TypeId::UINT8 => Element::U8,
        TypeId::INT16 => Element::I16,
        TypeId::UINT16 => Element::U16,
        TypeId::INT32 => Element::I32,
        TypeId::UINT32 => Element::U32,
        TypeId::INT64 => Element::I64,
        TypeId::UINT64 => Element::U64,
        TypeId::FLOAT32 => Element::F32,
        TypeId::FLOAT64 => Element::F64,
        CHAR => Element::Char,
        WIDE_CHAR => Element::WideChar,
        TypeId::BOOL => Element::Bool,
        TypeId::BYTE => Element::Byte,
        TypeId::STRING => Element::Text { bound: None },
        TypeId::WSTRING => Element::WideText { bound: None },
        TypeId::BOUNDED_STRING => Element::Text { bound },
        TypeId::BOUNDED_WSTRING => Element::WideText { bound },
        other => return Err(BadField::Unsupported(other)),
    };
    Ok((RawElement::Plain(element), shape))
}
