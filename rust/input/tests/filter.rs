// SPDX-License-Identifier: GPL-2.0

//! The grammar of filter expressions.

use rtrace_input::filter::error::{Error, FilterReason};
use rtrace_input::filter::parse::Parser;
use rtrace_input::filter::{Element, Number, Operand, Operator, Predicate};

fn elements(text: &str) -> Result<Vec<Element<'_>>, Error> {
    Parser::new(text).collect()
}

/// Returns the only predicate of an expression.
fn predicate(text: &str) -> Predicate<'_> {
    match elements(text).as_deref() {
        Ok([Element::Predicate(predicate)]) => *predicate,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn an_expression_has_elements_in_order() {
    let text = "!(a==1&&  b.ustring ~'x')\t||!\n! common_pid<= -0x1F";
    let a = predicate("a==1");
    let b = Predicate {
        name: "b",
        name_at: 10,
        is_ustring: true,
        operator: Operator::Glob,
        operator_at: 20,
        operand: Operand::Text("x"),
        operand_at: 21,
    };
    let pid = Predicate {
        name: "common_pid",
        name_at: 32,
        is_ustring: false,
        operator: Operator::LessOrEqual,
        operator_at: 42,
        operand: Operand::Number(Number {
            is_negative: true,
            magnitude: 31,
            is_decimal: false,
        }),
        operand_at: 45,
    };
    let expected = [
        Element::Not,
        Element::Open,
        Element::Predicate(Predicate {
            name_at: 2,
            operator_at: 3,
            operand_at: 5,
            ..a
        }),
        Element::And,
        Element::Predicate(b),
        Element::Close,
        Element::Or,
        Element::Not,
        Element::Not,
        Element::Predicate(pid),
    ];
    assert_eq!(elements(text).as_deref(), Ok(&expected[..]));
}

#[test]
fn all_operators_are_known() {
    for (operator, expected) in [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
        ("&", Operator::And),
        ("~", Operator::Glob),
    ] {
        for text in [format!("a{operator}1"), format!("a {operator} 1")] {
            assert_eq!(predicate(&text).operator, expected, "{text}");
        }
    }
}

/// Numbers as kstrtoull() accepts them, with base 0.
#[test]
fn numbers_are_those_of_the_kernel() {
    for (text, magnitude, is_decimal) in [
        ("0", 0, true),
        ("10", 10, true),
        ("-10", 10, true),
        ("010", 8, false),
        ("00", 0, false),
        ("0x10", 16, false),
        ("-0X1f", 31, false),
        ("18446744073709551615", u64::MAX, true),
        ("0xffffffffffffffff", u64::MAX, false),
    ] {
        let expression = format!("a=={text}");
        let expected = Number {
            is_negative: text.starts_with('-'),
            magnitude,
            is_decimal,
        };
        assert_eq!(predicate(&expression).operand, Operand::Number(expected));
    }
}

#[test]
fn texts_are_what_stands_between_quotes() {
    for (text, expected) in [
        (r#"a=="""#, ""),
        (r#"a=="it's""#, "it's"),
        (r#"a=='"'"#, "\""),
        (r#"a=="b) && (c""#, "b) && (c"),
        (r#"a=="\""#, "\\"),
        (r#"a=="ü""#, "ü"),
    ] {
        assert_eq!(predicate(text).operand, Operand::Text(expected));
    }
    let longest = "x".repeat(255);
    let expression = format!("a == '{longest}'");
    assert_eq!(predicate(&expression).operand, Operand::Text(&longest));
    let expression = format!("a == 'x{longest}'");
    let (at, reason) = (5, FilterReason::LongText);
    assert_eq!(elements(&expression), Err(Error { at, reason }));
    assert_eq!(
        predicate("a & CPUS{ 0-3, 5 }").operand,
        Operand::Cpus(" 0-3, 5 ")
    );
}

/// Error and caret position of invalid expressions.
#[test]
fn what_is_no_expression_is_refused() {
    use FilterReason::*;
    for (text, caret, reason) in [
        ("", "^", Empty),
        (" \t", "  ^", Empty),
        ("!", " ^", NoPredicate),
        ("()", " ^", NoPredicate),
        ("a==1 &&", "       ^", NoPredicate),
        ("a==1 && || b==1", "        ^", NoPredicate),
        ("&& a==1", "^", NoPredicate),
        ("\"a\"==1", "^", NoPredicate),
        ("a==1 && ü==1", "        ^", NoPredicate),
        ("-1 == a", "^", NoPredicate),
        ("a==1 b==1", "     ^", NoConnective),
        ("a==1 & b==1", "     ^", NoConnective),
        ("a==1 | b==1", "     ^", NoConnective),
        ("a==1 (b==1)", "     ^", NoConnective),
        ("a==1 !b==1", "     ^", NoConnective),
        ("(a==1) == 1", "       ^", NoConnective),
        ("a=='b'c", "      ^", NoConnective),
        ("(a==1", "^", NotClosed),
        ("((a==1) && (b==1) ", "^", NotClosed),
        ("(a==1) && (b==1", "          ^", NotClosed),
        ("a==1)", "    ^", NotOpened),
        ("(a==1))||b==1", "      ^", NotOpened),
        ("a", " ^", NoOperator),
        ("a = 1", "  ^", NoOperator),
        ("a && b==1", "  ^", NoOperator),
        ("a || b==1", "  ^", NoOperator),
        ("(a)", "  ^", NoOperator),
        ("a.b == 1", " ^", NoOperator),
        ("a !~ 'b'", "  ^", NoOperator),
        ("a.function == b", " ^", Function),
        ("a ==", "    ^", NoOperand),
        ("a == == 1", "     ^", NoOperand),
        ("a == +1", "     ^", NoOperand),
        ("a && 1", "  ^", NoOperator),
        ("a == bash", "     ^", NoQuotes),
        ("a == _", "     ^", NoQuotes),
        ("a == cpus{1}", "     ^", NoQuotes),
        ("a == \"b && c==1", "     ^", NotQuoted),
        ("a == 'b\"", "     ^", NotQuoted),
        ("a == 09", "     ^", NoNumber),
        ("a == 0x", "     ^", NoNumber),
        ("a == 12k", "     ^", NoNumber),
        ("a == -", "     ^", NoNumber),
        ("a == --1", "     ^", NoNumber),
        ("a == 1_000", "     ^", NoNumber),
        ("a == 18446744073709551616", "     ^", LargeNumber),
        ("a == -0x10000000000000000", "     ^", LargeNumber),
        ("a & CPUS", "        ^", NoBrace),
        ("a & CPUS {1}", "        ^", NoBrace),
        ("a & CPUS{1", "    ^", NotBraced),
    ] {
        let at = text.len().min(caret.len() - 1);
        assert_eq!(elements(text), Err(Error { at, reason }), "{text}");
    }
}

#[test]
fn sixteen_parentheses_may_be_open() {
    let nested = |depth| format!("{}a==1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(elements(&nested(16)).map(|all| all.len()), Ok(33));
    let (at, reason) = (16, FilterReason::TooDeep);
    assert_eq!(elements(&nested(17)), Err(Error { at, reason }));
    // The limit is for nested parentheses only.
    let row = vec!["((a==1))"; 40].join("&&");
    assert!(elements(&row).is_ok());
}

#[test]
fn nothing_comes_behind_an_error() {
    let mut parser = Parser::new("a==1 b==1");
    assert!(matches!(parser.next(), Some(Ok(_))));
    assert!(matches!(parser.next(), Some(Err(_))));
    assert!(parser.next().is_none());
}

#[test]
fn the_caret_stands_under_the_place() {
    let shown = |text: &str| elements(text).expect_err(text).shown(text).to_string();
    assert_eq!(
        shown("((sig >= 10 && sig < 15) || dsig = 17) && comm != bash"),
        "((sig >= 10 && sig < 15) || dsig = 17) && comm != bash\n\
         \x20                                ^\n\
         expected an operator: ==, !=, <, <=, >, >=, & or ~"
    );
    // The caret is on the error's line, after the same columns and tabs.
    assert_eq!(
        shown("a == 'ü' &&\n\tb == 'ü' && c = 1\n|| d"),
        "\tb == 'ü' && c = 1\n\
         \t              ^\n\
         expected an operator: ==, !=, <, <=, >, >=, & or ~"
    );
    assert_eq!(shown(""), "\n^\nthe expression is empty");
    let range = |is_signed, bits| FilterReason::OutOfRange { is_signed, bits }.to_string();
    for (reason, expected) in [
        (range(true, 8), "-128 to 127, or 0x0 to 0xff"),
        (range(false, 8), "0 to 255"),
        (range(true, 1), "-1 to 0, or 0x0 to 0x1"),
        (range(false, 64), "0 to 18446744073709551615"),
        (
            range(true, 64),
            "-9223372036854775808 to 9223372036854775807, or 0x0 to 0xffffffffffffffff",
        ),
    ] {
        assert_eq!(
            reason,
            format!("the field never has this number: its range is {expected}")
        );
    }
    let reason = FilterReason::LargeCpu { cpus: 12 };
    assert_eq!(reason.to_string(), "the last CPU is 11");
}
