// SPDX-License-Identifier: GPL-2.0

//! Compiler from an expression to a program.

use super::abi::schema::{Field, FieldType, Integer, Shown};
use super::flow::Flow;
use super::input::cpulist::{self, CpuList};
use super::input::filter::error::{Error, FilterReason};
use super::input::filter::parse::Parser;
use super::input::filter::{Element, Number, Operand, Operator, Predicate};
use super::input::glob;
use super::layout::{self, ComparedValue, FieldLayout};
use super::program::{
    BytesAt, NumberAt, Program, ProgramText, Range, Step, Test, TextAt, MAX_STEPS, MAX_TEXTS,
};
use super::value::{Value, ValuePlace, MAX_PASSED};

/// ftrace's names of contexts.
const FTRACE_NAMES: [(&str, &str); 4] = [
    ("CPU", "cpu"),
    ("common_cpu", "cpu"),
    ("COMM", "comm"),
    ("common_pid", "tid"),
];

/// Meaning of the names in an expression.
#[derive(Clone, Copy, Debug)]
pub struct FilterNames<'a, F> {
    /// The event's fields, in the order of the record.
    pub fields: F,
    /// Contexts, for names that no field has. `cpu`, `comm` and `tid` can also be given by ftrace's
    /// names: `CPU`, `common_cpu`, `COMM`, `common_pid`.
    pub contexts: &'a [FilterContext<'a>],
    /// The CPUs of this machine are 0 to `cpus` - 1.
    pub cpus: u32,
    /// Whether fields with kernel addresses are refused. A user who may not see an address could
    /// otherwise find it by comparisons.
    pub hides_addresses: bool,
}

/// An available context.
#[derive(Clone, Copy, Debug)]
pub struct FilterContext<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its id for [`Contexts`](super::evaluate::Contexts).
    pub id: u8,
    /// Its type: an integer or a text. (The place in a record and the size of a text do not
    /// matter.)
    pub ty: FieldType<'a>,
}

/// Memory for a program. It limits the program's size, as do [`MAX_STEPS`] and [`MAX_TEXTS`].
#[derive(Debug)]
pub struct ProgramMemory<'m> {
    /// Memory for the steps.
    pub steps: &'m mut [Step],
    /// Memory for the texts.
    pub texts: &'m mut [u8],
}

/// Compiles an expression in ftrace's language. The program lies at the beginning of the memory.
///
/// Allocates no memory, and uses less than two KiB of stack. Any context.
pub fn compile<'f, 'm>(
    expression: &str,
    names: FilterNames<'_, impl Iterator<Item = Field<'f>> + Clone>,
    memory: ProgramMemory<'m>,
) -> Result<Program<'m>, Error> {
    let mut compiler = Compiler {
        contexts: names.contexts,
        cpus: names.cpus,
        hides_addresses: names.hides_addresses,
        layout: FieldLayout {
            fields: names.fields,
        },
        code: Code {
            steps: at_most(MAX_STEPS, memory.steps),
            step_count: 0,
            texts: at_most(MAX_TEXTS, memory.texts),
            text_bytes: 0,
        },
    };
    let mut flow = Flow::new();
    for element in Parser::new(expression) {
        match element? {
            Element::Open => flow.open(),
            Element::Close => flow.close(),
            Element::Not => flow.not(),
            Element::And => flow.and(compiler.code.steps()),
            Element::Or => flow.or(compiler.code.steps()),
            Element::Predicate(predicate) => {
                let is_contrary = compiler.predicate(&predicate)?;
                flow.predicate(compiler.code.step_count.saturating_sub(1), is_contrary);
            }
        }
    }
    flow.end(compiler.code.steps());
    Ok(compiler.code.program())
}

/// Finds the value that a name has in the records of an event.
///
/// Allocates no memory. Any context.
pub fn find<'f>(
    name: &str,
    names: FilterNames<'_, impl Iterator<Item = Field<'f>> + Clone>,
) -> Result<Value, FilterReason> {
    let mut steps = [Step::NONE; MAX_PASSED];
    let mut compiler = Compiler {
        contexts: names.contexts,
        cpus: names.cpus,
        hides_addresses: names.hides_addresses,
        layout: FieldLayout {
            fields: names.fields,
        },
        code: Code {
            steps: &mut steps,
            step_count: 0,
            texts: &mut [],
            text_bytes: 0,
        },
    };
    let place = match compiler.named(name)? {
        ComparedValue::Number(from, integer) => ValuePlace::Number(from, integer),
        ComparedValue::Text(from, _) => ValuePlace::Text(from),
        ComparedValue::Set(_) => return Err(FilterReason::Incomparable),
    };
    let step_count = compiler.code.step_count;
    Ok(Value::new(steps, step_count, place))
}

fn at_most<T>(len: usize, memory: &mut [T]) -> &mut [T] {
    let len = len.min(memory.len());
    memory.get_mut(..len).unwrap_or_default()
}

/// A program under construction.
struct Code<'m> {
    steps: &'m mut [Step],
    step_count: usize,
    texts: &'m mut [u8],
    text_bytes: usize,
}

impl<'m> Code<'m> {
    fn steps(&mut self) -> &mut [Step] {
        self.steps.get_mut(..self.step_count).unwrap_or_default()
    }

    fn program(self) -> Program<'m> {
        let (steps, texts): (&'m [Step], &'m [u8]) = (self.steps, self.texts);
        Program {
            steps: steps.get(..self.step_count).unwrap_or_default(),
            texts: texts.get(..self.text_bytes).unwrap_or_default(),
        }
    }

    fn push(&mut self, test: Test) -> Result<(), FilterReason> {
        let next = self.steps.get_mut(self.step_count);
        *next.ok_or(FilterReason::LongProgram)? = Step {
            test,
            if_true: 0,
            if_false: 0,
        };
        self.step_count = self.step_count.saturating_add(1);
        Ok(())
    }

    /// Returns room for this many bytes of text.
    fn text(&mut self, len: usize) -> Result<(ProgramText, &mut [u8]), FilterReason> {
        let start = self.text_bytes;
        let end = start.saturating_add(len);
        let bytes = self
            .texts
            .get_mut(start..end)
            .ok_or(FilterReason::LongTexts)?;
        self.text_bytes = end;
        let text = ProgramText {
            start: start as u16,
            len: len as u16,
        };
        Ok((text, bytes))
    }
}

const _: () = assert!(MAX_TEXTS <= u16::MAX as usize);

struct Compiler<'n, 'm, F> {
    contexts: &'n [FilterContext<'n>],
    cpus: u32,
    hides_addresses: bool,
    layout: FieldLayout<F>,
    code: Code<'m>,
}

impl<'f, F: Iterator<Item = Field<'f>> + Clone> Compiler<'_, '_, F> {
    /// Adds steps, the last of which evaluates the predicate or its negation. Returns whether it is
    /// the negation.
    fn predicate(&mut self, predicate: &Predicate<'_>) -> Result<bool, Error> {
        let at_name = |reason| Error {
            at: predicate.name_at,
            reason,
        };
        let at_operator = |reason| Error {
            at: predicate.operator_at,
            reason,
        };
        let at_operand = |reason| Error {
            at: predicate.operand_at,
            reason,
        };

        let value = self.named(predicate.name).map_err(at_name)?;
        if predicate.is_ustring && !matches!(value, ComparedValue::Text(..)) {
            return Err(at_name(FilterReason::NoText));
        }
        let operator = predicate.operator;
        let (test, is_contrary) = match (value, predicate.operand) {
            (ComparedValue::Number(from, integer), Operand::Number(number)) => {
                if operator == Operator::Glob {
                    return Err(at_operator(FilterReason::NumberOperator));
                }
                number_test(operator, from, integer, number).map_err(at_operand)?
            }
            (ComparedValue::Number(from, integer), Operand::Cpus(list)) => {
                for_cpus(operator).map_err(at_operator)?;
                self.cpu_test(predicate, from, integer, list)?
            }
            (ComparedValue::Text(from, longest), Operand::Text(text)) => self
                .text_test(operator, from, longest, text)
                .map_err(|reason| match reason {
                    FilterReason::TextOperator => at_operator(reason),
                    _ => at_operand(reason),
                })?,
            (ComparedValue::Set(from), Operand::Cpus(list)) => {
                let is_contrary = for_cpus(operator).map_err(at_operator)?;
                let test = self.set_test(predicate, from, list)?;
                (test, is_contrary)
            }
            (ComparedValue::Number(..), Operand::Text(_)) => {
                return Err(at_operand(FilterReason::IsNumber))
            }
            (ComparedValue::Text(..), _) => return Err(at_operand(FilterReason::IsText)),
            (ComparedValue::Set(_), _) => return Err(at_operand(FilterReason::IsArray)),
        };
        self.code.push(test).map_err(at_name)?;
        Ok(is_contrary)
    }

    /// Returns the meaning of a name: an event's field, or else a context. Adds a step for each
    /// earlier field that evaluation must pass to find the field.
    fn named(&mut self, name: &str) -> Result<ComparedValue, FilterReason> {
        if let Some((index, ty)) = self.layout.find(name) {
            if self.hides_addresses && ty.has_addresses() {
                return Err(FilterReason::Hidden);
            }
            if self.layout.has_bit_field(index) {
                return Err(FilterReason::BitField);
            }
            for field in self.layout.passed(index) {
                let field = field.ok_or(FilterReason::Incomparable)?;
                self.code.push(Test::Pass(field))?;
            }
            return self
                .layout
                .value(index, ty)
                .ok_or(FilterReason::Incomparable);
        }
        let find = |name: &str| self.contexts.iter().find(|context| context.name == name);
        let alias = || {
            let (_, ours) = FTRACE_NAMES.iter().find(|(theirs, _)| *theirs == name)?;
            find(ours)
        };
        let context = find(name).or_else(alias).ok_or(FilterReason::Unknown)?;
        layout::context(context.name, context.id, context.ty).ok_or(FilterReason::Incomparable)
    }

    fn text_test(
        &mut self,
        operator: Operator,
        from: TextAt,
        longest: Option<u32>,
        text: &str,
    ) -> Result<(Test, bool), FilterReason> {
        let (is_glob, is_contrary, text) = match operator {
            Operator::Equal => (false, false, text),
            Operator::NotEqual => (false, true, text),
            Operator::Glob => match text.strip_prefix('!') {
                Some(pattern) => (true, true, pattern),
                None => (true, false, text),
            },
            _ => return Err(FilterReason::TextOperator),
        };
        let shortest = if is_glob {
            glob::shortest(text)
        } else {
            text.len()
        };
        if let Some(most) = longest.filter(|most| shortest > *most as usize) {
            return Err(FilterReason::TooLong { most });
        }
        let (operand, bytes) = self.code.text(text.len())?;
        bytes.copy_from_slice(text.as_bytes());
        let test = if is_glob {
            Test::Glob {
                from,
                pattern: operand,
            }
        } else {
            Test::Equal {
                from,
                text: operand,
            }
        };
        Ok((test, is_contrary))
    }

    /// Adds the comparison of a number with CPUs.
    fn cpu_test(
        &mut self,
        predicate: &Predicate<'_>,
        from: NumberAt,
        integer: Integer,
        list: &str,
    ) -> Result<(Test, bool), Error> {
        let set = self.cpus(predicate, list)?;
        let mask = mask(integer);
        if let Some(cpu) = set.single {
            let operator = match predicate.operator {
                Operator::And => Operator::Equal,
                other => other,
            };
            let number = Number {
                is_negative: false,
                magnitude: cpu.into(),
                is_decimal: true,
            };
            return number_test(operator, from, integer, number).map_err(|reason| Error {
                at: predicate.operand_at,
                reason,
            });
        }
        let last = u64::from(self.cpus.saturating_sub(1));
        Ok(match predicate.operator {
            Operator::And => {
                let set = set.bits;
                (Test::Member { from, mask, set }, false)
            }
            // The number differs from several CPUs, but must be a CPU.
            Operator::NotEqual => {
                let range = Range::new(0, last.min(mask), mask);
                (Test::Range { from, range }, false)
            }
            // A number never equals several CPUs: the negation of a test that every number passes.
            _ => {
                let range = Range::new(0, mask, mask);
                (Test::Range { from, range }, true)
            }
        })
    }

    /// Adds the comparison of a set of numbers with CPUs; `!=` is compiled as `==`.
    fn set_test(
        &mut self,
        predicate: &Predicate<'_>,
        from: BytesAt,
        list: &str,
    ) -> Result<Test, Error> {
        let set = self.cpus(predicate, list)?.bits;
        Ok(match predicate.operator {
            Operator::And => Test::Intersects { from, set },
            _ => Test::SameSet { from, set },
        })
    }

    /// Adds a list of CPUs to the texts, as a bitmap.
    fn cpus(&mut self, predicate: &Predicate<'_>, list: &str) -> Result<Set, Error> {
        let cpus = self.cpus;
        let error = |at, reason| Error { at, reason };
        let (bits, bytes) = self
            .code
            .text(cpus.div_ceil(8) as usize)
            .map_err(|reason| error(predicate.operand_at, reason))?;
        bytes.fill(0);
        for item in CpuList::new(list, cpus) {
            let item = item.map_err(|wrong| {
                let at = predicate.operand_at.saturating_add("CPUS{".len());
                let reason = match wrong.reason {
                    cpulist::CpuListReason::NoCpu => FilterReason::LargeCpu { cpus },
                    cpulist::CpuListReason::NoList => FilterReason::NoCpuList,
                };
                error(at.saturating_add(wrong.at), reason)
            })?;
            for cpu in item.cpus() {
                if let Some(byte) = bytes.get_mut((cpu / 8) as usize) {
                    *byte |= 1_u8.wrapping_shl(cpu % 8);
                }
            }
        }
        let mut members = (0..cpus).filter(|cpu| {
            let byte = bytes.get((cpu / 8) as usize);
            byte.is_some_and(|byte| byte.wrapping_shr(cpu % 8) & 1 != 0)
        });
        let first = members
            .next()
            .ok_or(error(predicate.operand_at, FilterReason::NoCpu))?;
        let single = members.next().is_none().then_some(first);
        Ok(Set { bits, single })
    }
}

struct Set {
    bits: ProgramText,
    /// The only member, if there is just one.
    single: Option<u32>,
}

/// Returns whether the operator is the negation of `==`. An error if CPUs have no such operator.
fn for_cpus(operator: Operator) -> Result<bool, FilterReason> {
    match operator {
        Operator::Equal | Operator::And => Ok(false),
        Operator::NotEqual => Ok(true),
        _ => Err(FilterReason::CpusOperator),
    }
}

/// A mask of the bits of an integer.
fn mask(integer: Integer) -> u64 {
    u64::MAX.wrapping_shr(64_u32.saturating_sub(integer.bits.into()))
}

/// Returns the comparison of a number with another one, and whether the result must be negated.
fn number_test(
    operator: Operator,
    from: NumberAt,
    integer: Integer,
    number: Number,
) -> Result<(Test, bool), FilterReason> {
    let mask = mask(integer);
    let is_signed = integer.shown == Shown::Signed;
    let value = bits_of(number, is_signed, mask).ok_or(FilterReason::OutOfRange {
        is_signed,
        bits: integer.bits,
    })?;
    // Modulo `mask` + 1, every value is the least one plus an offset.
    let least = if is_signed {
        mask.wrapping_shr(1).wrapping_add(1)
    } else {
        0
    };
    let most = least.wrapping_sub(1);
    let (range, is_contrary) = match operator {
        Operator::Equal => (Range::new(value, value, mask), false),
        Operator::NotEqual => (Range::new(value, value, mask), true),
        Operator::LessOrEqual => (Range::new(least, value, mask), false),
        Operator::Greater => (Range::new(least, value, mask), true),
        Operator::GreaterOrEqual => (Range::new(value, most, mask), false),
        Operator::Less => (Range::new(value, most, mask), true),
        // The negation of a test that none of these bits is set.
        Operator::And => (Range::new(0, 0, value), true),
        Operator::Glob => return Err(FilterReason::NumberOperator),
    };
    Ok((Test::Range { from, range }, is_contrary))
}

impl Range {
    /// Makes the range from `low` to `high`, modulo `mask` + 1.
    fn new(low: u64, high: u64, mask: u64) -> Self {
        Self {
            low,
            mask,
            span: high.wrapping_sub(low) & mask,
        }
    }
}

/// Returns a number as bits of an integer. [`None`] if the integer has no room for it.
fn bits_of(number: Number, is_signed: bool, mask: u64) -> Option<u64> {
    let Number {
        is_negative,
        magnitude,
        is_decimal,
    } = number;
    let largest = mask.wrapping_shr(1);
    let most = match (is_signed, is_negative) {
        (true, true) => largest.wrapping_add(1),
        (false, true) => 0,
        (true, false) if is_decimal => largest,
        (_, false) => mask,
    };
    let value = if is_negative {
        magnitude.wrapping_neg() & mask
    } else {
        magnitude
    };
    (magnitude <= most).then_some(value)
}
