// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A layer for the crate `tracing-subscriber`.

use crate::callsites::{find, of};
use crate::shapes::Maker;
use tracing_core::span::{Attributes, Id};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Event, Metadata};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Filter, Layer as LayerTrait};
use tracing_subscriber::registry::LookupSpan;

/// A layer that records events and spans with rtrace.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// tracing_subscriber::registry().with(rtrace_event::layer()).init();
/// tracing::info!(status = 200, path = "/cart", "request done");
/// ```
///
/// An event is called `user.TARGET:NAME`: the target has `.` for `::`. The name is that of `name: "..."`, or the name of the
/// file and the line, as `main_17`. It has the event's fields; `message` is the text. Numbers are 64 bits, `bool` is `u8`,
/// all other values are texts.
///
/// A span is two events: `NAME_begin` with `span_id`, `parent_id` and the fields, when it is made, and `NAME_end` with
/// `span_id`, when it is closed. Both may be on any thread. rtrace records neither when a thread enters and leaves a span,
/// nor values that are added later. The id of a closed span is used again.
///
/// rtrace knows an event from the first time on that the program gets there. Each combination of fields and types that a
/// place in the program records is an event; at most 16 have the same name.
///
/// While nobody records an event, its values are not formatted. Other layers are not affected. The program must not record
/// in the handler of a signal.
pub fn layer<S>() -> Filtered<Layer, Listening, S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    Layer.with_filter(Listening)
}

/// See [`layer`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Layer;

/// The filter of [`layer`]: what somebody records now.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Listening;

impl<S> Filter<S> for Listening {
    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match of(metadata) {
            Some(_) => Interest::sometimes(),
            None => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        // Another thread may be about to make it known.
        find(metadata).is_none_or(|callsite| callsite.is_recorded())
    }
}

impl<S> LayerTrait<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if let Some(callsite) = of(event.metadata()) {
            let mut made = Maker::new();
            event.record(&mut made);
            callsite.record(&made.shape, &mut made.record);
        }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(callsite) = of(attributes.metadata()) else {
            return;
        };
        let parent = match attributes.is_contextual() {
            true => context.current_span().id().cloned(),
            false => attributes.parent().cloned(),
        };
        let mut made = Maker::new();
        made.record.put(&id.into_u64().to_ne_bytes());
        let parent = parent.map_or(0, |parent| parent.into_u64());
        made.record.put(&parent.to_ne_bytes());
        attributes.record(&mut made);
        callsite.record(&made.shape, &mut made.record);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let callsite = context.metadata(&id).and_then(of);
        if let Some(callsite) = callsite {
            callsite.record_end(id.into_u64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrace_input::program::EventDefinition;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::prelude::*;

    /// Keeps the texts of the events.
    #[derive(Clone, Default)]
    struct Texts(Arc<Mutex<Vec<String>>>);

    impl Texts {
        fn keep(&self, metadata: &'static Metadata<'static>, made: &Maker) {
            let text = of(metadata).unwrap().describe(&made.shape);
            let parsed = EventDefinition::parse(&text).map(|_| ());
            assert_eq!(parsed, Ok(()), "{text}");
            self.0.lock().unwrap().push(text);
        }
    }

    impl<S: Subscriber> LayerTrait<S> for Texts {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut made = Maker::new();
            event.record(&mut made);
            self.keep(event.metadata(), &made);
        }

        fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
            let mut made = Maker::new();
            attributes.record(&mut made);
            self.keep(attributes.metadata(), &made);
        }
    }

    fn generic<T: tracing::Value>(value: T) {
        tracing::info!(name: "generic", target: "a-b::c", value);
    }

    #[test]
    fn texts_say_what_the_values_are() {
        let texts = Texts::default();
        let subscriber = tracing_subscriber::registry()
            .with(texts.clone())
            .with(layer());
        let line = line!() + 2;
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(
                http.status = 200_u64,
                size = -1_i64,
                is_new = true,
                "text {}",
                1
            );
            generic(1_u64);
            generic("text");
            generic(None::<u64>);
            generic(0.5);
            let _span = tracing::info_span!("the span", span_id = 1_u64, error = ?Some(1));
        });
        let of_file = format!(
            "rtrace_event.layer.tests:layer_{line} string message; u64 http_status; s64 size; u8 is_new"
        );
        assert_eq!(
            *texts.0.lock().unwrap(),
            [
                of_file.as_str(),
                "a_b.c:generic u64 value",
                "a_b.c:generic string value",
                "a_b.c:generic ",
                "a_b.c:generic string value",
                "rtrace_event.layer.tests:the_span_begin u64 span_id; u64 parent_id; u64 span_id_2; string error",
            ]
        );
    }
}
