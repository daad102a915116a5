// SPDX-License-Identifier: Apache-2.0

//! Operations, compared with the same operations computed here in another way.

use num_bigint::BigUint;
use proptest::prelude::*;

use super::*;
use crate::pipeline::model::action::Op;
use crate::pipeline::model::expr::Expr;

const PROGRAM: &[u8] = include_bytes!("../../../tests/fixtures/arithmetic.json");

#[derive(Debug, Clone)]
struct Operands {
    a: u8,
    b: u8,
    s: i16,
    t: i16,
    address: u64,
    v: u128,
    w: [u8; 32],
    n: u8,
    m: u8,
}

fn encode(of: &Operands) -> Vec<u8> {
    let mut bytes = vec![of.a, of.b];
    bytes.extend(of.s.to_be_bytes());
    bytes.extend(of.t.to_be_bytes());
    bytes.extend(&of.address.to_be_bytes()[2..]);
    bytes.extend(of.v.to_be_bytes());
    bytes.extend(of.w);
    bytes.push(of.n << 5 | of.m);
    bytes
}

fn expected(of: &Operands) -> Vec<u8> {
    let Operands { a, b, s, t, .. } = *of;
    let mut bytes = vec![
        a.wrapping_add(b),
        a.wrapping_sub(b),
        a.saturating_add(b),
        a.saturating_sub(b),
        a.wrapping_mul(b),
        a << 3,
        a >> of.n,
        !a,
        (a & 0xf0 | b & 0x0f) ^ 0x3c,
        a,
        b,
    ];
    bytes.extend(((of.address >> 8) as u16).to_be_bytes());
    bytes.extend((s >> 2).to_be_bytes());
    bytes.extend(s.saturating_add(t).to_be_bytes());
    bytes.extend(s.wrapping_neg().to_be_bytes());
    bytes.extend(i32::from(s).to_be_bytes());
    bytes.push(a.max(b));
    bytes.extend(of.v.wrapping_add(1).to_be_bytes());
    let wide = BigUint::from_bytes_be(&of.w) * 3u8 + of.v;
    let size = BigUint::from(1u8) << 256;
    let wide = BigUint::to_bytes_be(&(wide % size));
    bytes.resize(bytes.len() + 32 - wide.len(), 0);
    bytes.extend(wide);
    let shifted = (u128::from(of.address & 0xff_ffff_ffff) << of.m) as u64;
    bytes.extend(&shifted.to_be_bytes()[3..]);
    let truths = [
        s < t,
        a < b,
        of.v > 0xffff_ffff_ffff_ffff_ffff,
        a == 1 && b != 2,
        a < 7 || b <= 2,
    ];
    let last = truths
        .iter()
        .fold(of.n, |bits, truth| bits << 1 | u8::from(*truth));
    bytes.push(last);
    bytes
}

fn operands() -> impl Strategy<Value = Operands> {
    let edge16 = prop_oneof![any::<i16>(), Just(i16::MIN), Just(i16::MAX), Just(-1)];
    let wide = prop_oneof![
        any::<u128>(),
        Just(u128::MAX),
        Just(0xffff_ffff_ffff_ffff_ffff)
    ];
    let small = prop_oneof![any::<u8>(), 0u8..4];
    (
        (small.clone(), small),
        (edge16.clone(), edge16),
        0u64..1 << 48,
        wide,
        prop_oneof![any::<[u8; 32]>(), Just([0xff; 32])],
        (0u8..8, 0u8..32),
    )
        .prop_map(|((a, b), (s, t), address, v, w, (n, m))| Operands {
            a,
            b,
            s,
            t,
            address,
            v,
            w,
            n,
            m,
        })
}

proptest! {
    #[test]
    fn operations_are_exact_in_every_width(of in operands()) {
        let mut pipeline = pipeline(PROGRAM);
        let (frames, _) = send(&mut pipeline, 3, &encode(&of), 0);
        prop_assert_eq!(frames, vec![(3, expected(&of))]);
    }
}

#[test]
fn only_what_is_wider_than_128_bits_is_computed_without_bound() {
    let program = Program::load(PROGRAM).unwrap();
    let wide = program.actions.iter().flat_map(|action| &action.ops);
    let wide = wide.filter(|op| {
        matches!(
            op,
            Op::Assign {
                value: Expr::Big(_),
                ..
            }
        )
    });
    assert_eq!(wide.count(), 1);
}
