// SPDX-License-Identifier: Apache-2.0

//! From JSON to expressions.

use num_bigint::BigInt;
use serde_json::Value;

use super::error::{LoadError, malformed, unsupported};
use super::symbols::Symbols;
use super::width::select_width;
use crate::pipeline::model::expr::{Dest, Element, Expr, Node};
use crate::pipeline::model::slot::Slot;

/// What the expressions of an action or a state may refer to.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub symbols: &'a Symbols,
    /// The action's parameters.
    pub params: &'a [Slot],
    /// Where the expression stands, for errors.
    pub place: &'a str,
}

type Tree = Node<BigInt>;

impl Names<'_> {
    pub fn unsupported<T>(&self, construct: impl Into<String>) -> Result<T, LoadError> {
        Err(unsupported(self.place.into(), construct.into()))
    }

    pub fn malformed<T>(&self, problem: impl Into<String>) -> Result<T, LoadError> {
        Err(malformed(self.place.into(), problem.into()))
    }

    /// An expression whose low `bits` are used.
    pub fn expr(&self, value: &Value, bits: u32) -> Result<Expr, LoadError> {
        Ok(select_width(&self.tree(value)?, Some(bits)))
    }

    /// An expression whose value is used: an index, a bound, a condition.
    pub fn exact(&self, value: &Value) -> Result<Expr, LoadError> {
        Ok(select_width(&self.tree(value)?, None))
    }

    /// The destination of an assignment.
    pub fn dest(&self, value: &Value) -> Result<Dest, LoadError> {
        match self.tree(value)? {
            Node::Field(slot) => Ok(Dest::Field(slot)),
            Node::StackLast(of) => Ok(Dest::StackLast(of)),
            Node::StackAt(element) => Ok(Dest::StackAt(element)),
            _ => self.malformed("assignment to something that is not a field"),
        }
    }

    /// A parameter that names something (`{"type": kind, "value": name}`).
    pub fn name<'v>(&self, value: Option<&'v Value>, kind: &str) -> Result<&'v str, LoadError> {
        let value = value.unwrap_or(&Value::Null);
        match (value["type"].as_str(), value["value"].as_str()) {
            (Some(found), Some(name)) if found == kind => Ok(name),
            (Some(found), _) if found != kind => {
                self.unsupported(format!("a {found} where a {kind} is expected"))
            }
            _ => self.malformed(format!("a parameter of type {kind} is missing")),
        }
    }

    /// A parameter that is a constant.
    pub fn constant(&self, value: Option<&Value>) -> Result<u64, LoadError> {
        match self.tree(value.unwrap_or(&Value::Null))? {
            Node::Const(constant) => match constant.try_into() {
                Ok(constant) => Ok(constant),
                Err(_) => self.malformed("a constant out of range"),
            },
            _ => self.malformed("a constant is missing"),
        }
    }

    fn tree(&self, value: &Value) -> Result<Tree, LoadError> {
        let content = &value["value"];
        match value["type"].as_str() {
            Some("expression") if content["op"].is_string() => self.operation(content),
            Some("expression") => self.tree(content),
            Some("hexstr") => match content.as_str().and_then(parse_hex) {
                Some(constant) => Ok(Node::Const(constant)),
                None => self.malformed(format!("{content} is not a hexadecimal number")),
            },
            Some("bool") => match content.as_bool() {
                Some(constant) => Ok(Node::Const(u8::from(constant).into())),
                None => self.malformed(format!("{content} is not a truth value")),
            },
            Some("field") => {
                let (header, field) = self.two_names(content)?;
                let field = self.symbols.field(header, field, self.place)?;
                if field.variable {
                    return self.unsupported("a varbit field in an expression");
                }
                Ok(Node::Field(field.slot))
            }
            Some("stack_field") => {
                let (stack, field) = self.two_names(content)?;
                let stack = self.symbols.stack(stack, self.place)?;
                let slot = self.symbols.stack_field(stack, field, self.place)?;
                Ok(Node::StackLast(Box::new((stack, slot))))
            }
            Some("local" | "runtime_data") => {
                let index = content
                    .as_u64()
                    .and_then(|index| usize::try_from(index).ok());
                match index.and_then(|index| self.params.get(index)) {
                    Some(slot) => Ok(Node::Arg(*slot)),
                    None => self.malformed(format!("no action parameter {content}")),
                }
            }
            Some(kind) => self.unsupported(format!("an operand of type {kind}")),
            None => self.malformed("an expression is missing"),
        }
    }

    fn two_names<'v>(&self, value: &'v Value) -> Result<(&'v str, &'v str), LoadError> {
        match (value[0].as_str(), value[1].as_str()) {
            (Some(first), Some(second)) => Ok((first, second)),
            _ => self.malformed(format!("{value} does not name a field")),
        }
    }

    fn operation(&self, content: &Value) -> Result<Tree, LoadError> {
        let op = content["op"].as_str().unwrap_or_default();
        let (left, right) = (&content["left"], &content["right"]);
        let one = || Ok::<_, LoadError>(Box::new(self.tree(right)?));
        let two = || Ok::<_, LoadError>(Box::new([self.tree(left)?, self.tree(right)?]));
        let swapped = || Ok::<_, LoadError>(Box::new([self.tree(right)?, self.tree(left)?]));
        Ok(match op {
            "+" if left.is_null() => self.tree(right)?,
            "+" => Node::Add(two()?),
            "-" if left.is_null() => {
                Node::Sub(Box::new([Node::Const(0.into()), self.tree(right)?]))
            }
            "-" => Node::Sub(two()?),
            "*" => Node::Mul(two()?),
            "/" => Node::Div(two()?),
            "%" => Node::Rem(two()?),
            "&" => Node::BitAnd(two()?),
            "|" => Node::BitOr(two()?),
            "^" => Node::BitXor(two()?),
            "~" => Node::BitNot(one()?),
            "<<" => Node::Shl(two()?),
            ">>" => Node::Shr(two()?, false),
            "==" => Node::Eq(two()?),
            "!=" => Node::Ne(two()?),
            "<" => Node::Less(two()?, false),
            ">" => Node::Less(swapped()?, false),
            "<=" => Node::LessEq(two()?, false),
            ">=" => Node::LessEq(swapped()?, false),
            "and" => Node::And(two()?),
            "or" => Node::Or(two()?),
            "not" => Node::Not(one()?),
            "d2b" => Node::Test(one()?),
            "b2d" => self.tree(right)?,
            "valid" => {
                let header = self.name(Some(right), "header")?;
                let header = self.symbols.header(header, self.place)?;
                Node::Field(self.symbols.layout.headers[header].validity())
            }
            "two_comp_mod" => Node::Wrap(Box::new(self.tree(left)?), self.width(right)?),
            "usat_cast" => Node::Saturate(Box::new(self.tree(left)?), self.width(right)?, false),
            "sat_cast" => Node::Saturate(Box::new(self.tree(left)?), self.width(right)?, true),
            "?" => {
                let cond = self.tree(&content["cond"])?;
                Node::If(Box::new([cond, self.tree(left)?, self.tree(right)?]))
            }
            "last_stack_index" => {
                let stack = self.name(Some(right), "header_stack")?;
                Node::LastIndex(self.symbols.stack(stack, self.place)?)
            }
            "access_field" => self.element_field(left, right)?,
            _ => return self.unsupported(format!("the operation {op}")),
        })
    }

    /// `access_field` of `dereference_header_stack`: a field of a stack element at an index.
    fn element_field(&self, element: &Value, field: &Value) -> Result<Tree, LoadError> {
        let mut element = element;
        while element["type"] == "expression" {
            element = &element["value"];
        }
        if element["op"] != "dereference_header_stack" {
            return self.unsupported("access_field of something that is not a stack element");
        }
        let stack = self.name(Some(&element["left"]), "header_stack")?;
        let stack = self.symbols.stack(stack, self.place)?;
        let index = field.as_u64().and_then(|index| usize::try_from(index).ok());
        let slot = index.and_then(|index| self.symbols.stack_field_index(stack, index));
        match slot {
            Some(slot) => {
                let index = self.exact(&element["right"])?;
                Ok(Node::StackAt(Box::new(Element { stack, slot, index })))
            }
            None => self.malformed(format!("the stack has no field {field}")),
        }
    }

    fn width(&self, value: &Value) -> Result<u32, LoadError> {
        match self.constant(Some(value))? {
            bits @ 1..=0x4000 => Ok(bits as u32),
            bits => self.unsupported(format!("an integer of {bits} bits")),
        }
    }
}

/// A constant of BMv2 JSON: hexadecimal, with an optional sign.
pub fn parse_hex(text: &str) -> Option<BigInt> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let value = BigInt::parse_bytes(digits.as_bytes(), 16)?;
    Some(if negative { -value } else { value })
}
